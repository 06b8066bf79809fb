begin;

create temporary table sample (one text, other text);
insert into sample values
  ('order 42 not found', 'order 7 not found'),
  ('order 42 not found', 'order 4200000000000 not found'),
  ('order -1 not found', 'order 1 not found'),
  ('took 3.14 s', 'took 30 s'),
  ('took 5ms', 'took 5000ms'),
  ('it failed with 1e9', 'it failed with 17'),
  ('task 01890000-0000-7000-8000-000000000001 is gone', 'task 0198f3aa-9c1d-7abc-9def-a1b2c3d4e5f6 is gone'),
  ('task {01890000-0000-7000-8000-000000000001} is gone', 'task {0198F3AA-9C1D-7ABC-9DEF-A1B2C3D4E5F6} is gone'),
  ('object at 0x7f3a00c0ffee', 'object at 0xdeadbeef'),
  ('commit a1b2c3d4 is unknown', 'commit 99ffee00 is unknown'),
  ('no route to 10.0.0.1:5432', 'no route to 192.168.17.4:6432'),
  ('no route to [fe80::1]:80', 'no route to [2001:db8::17]:443'),
  ('expired at 2026-01-31T12:00:00Z', 'expired at 2025-12-24T18:30:59.123+01:00'),
  ('expired at 2026-01-31 12:00:00', 'expired at 2025-12-24 18:30:59'),
  ('cannot read /var/spool/job17/in.csv', 'cannot read /var/spool/job4/out.csv'),
  ('user ''bob'' is unknown', 'user ''alice'' is unknown'),
  ('user "bob" is unknown', 'user "alice cooper" is unknown'),
  ('user `bob` is unknown', 'user `alice` is unknown'),
  ('user ''bob'' is unknown', 'user '''' is unknown'),
  ('user ''bob42'' is unknown', 'user ''alice'' is unknown'),
  ('''bob'' is unknown', '''alice'' is unknown'),
  ('name=''bob''', 'name=''alice'''),
  ('can''t find ''bob''', 'can''t find ''alice'''),
  ('user (''bob'', ''eu'') is unknown', 'user (''alice'', ''us'') is unknown'),
  (E'line 3: unexpected token\nline 4', E'line 17: unexpected token\nline 18'),
  ('Größe 17 ist ungültig', 'Größe 4 ist ungültig'),
  ('same', 'same'),
  (null, null),
  (repeat('a very long message ', 100) || 'x', repeat('a very long message ', 100) || 'y');

select plan(count(*)::integer + 1) from sample;

select is(
  rdq.fingerprint('h', 'E', s.one), rdq.fingerprint('h', 'E', s.other),
  format('%s · %s', left(translate(s.one, E'\n', ' '), 50), left(translate(s.other, E'\n', ' '), 50)))
from sample s;
select matches(rdq.fingerprint('h', 'E', 'm'), '^[0-9a-f]{16}$', 'it has 16 hexadecimal digits');

select * from finish();
rollback;
