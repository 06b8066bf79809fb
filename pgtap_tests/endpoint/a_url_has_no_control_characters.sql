begin;
\ir ../helpers/common.psql
select plan(10);

select rdq.create_queue('q');
select is(
  (pg_temp.error_of(format('select rdq.set_endpoint(%L, %L, %L)', 'q', 'h', s.url))).code, 'RD002', s.name)
from (values
  ('a line feed', E'https://example.org/a\nb'),
  ('a carriage return in the host', E'https://example\r.org/'),
  ('a tab', E'https://example.org/\ta'),
  ('DEL', E'https://example.org/\u007f'),
  ('a C1 control', E'https://example.org/\u009b31m'),
  ('an override of direction', E'https://example.org/\u202e'),
  ('a megabyte', 'https://example.org/' || repeat('a', 1000000))
) s (name, url);
select is(
  (pg_temp.error_of(format('select rdq.set_endpoint(%L, %L, %L)', 'q', 'h', E'https://u:secret@example.org/\n'))).message !~ 'secret',
  true, 'a password in it is not repeated');
select lives_ok($$ select rdq.set_endpoint('q', 'h', 'https://example.org/%0A?a=b%20c') $$, 'an escaped one is fine');
select lives_ok($$ select rdq.set_endpoint('q', 'i', 'https://example.org/käse') $$, 'and so is a letter of any language');

select * from finish();
rollback;
