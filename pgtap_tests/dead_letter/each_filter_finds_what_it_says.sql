begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql

-- Dead letters named by their payload; the times are hours ago.
create temporary table letter (name text, queue text, handler text, error_type text, class text, hours integer);
insert into letter values
  ('a', 'payments.eu', 'charge', 'java.net.TimeoutException', 'PERMANENT', 5),
  ('b', 'payments.eu', 'charge', 'TimeoutException', 'PERMANENT', 4),
  ('c', 'payments.eu', 'refund', '100%_done', 'PERMANENT', 3),
  ('d', 'payments.us', 'charge', 'IOError', 'PERMANENT', 2),
  ('e', 'mails', 'send', 'IO_Error', 'TRANSIENT', 1),
  ('f', 'mails', 'send', null, 'PERMANENT', 0);

create temporary table sample (filter text, found text, acts boolean default true);
insert into sample (filter, found) values
  ($$ $$, 'abcdef'),
  ($$ queue => null $$, 'abcdef'),
  ($$ queue => 'payments.eu' $$, 'abc'),
  ($$ queue => 'empty' $$, ''),
  ($$ handler => 'charge' $$, 'abd'),
  ($$ queue => 'payments.eu', handler => 'charge' $$, 'ab'),
  ($$ error_type => 'TimeoutException' $$, 'b'),
  ($$ error_type => '*TimeoutException' $$, 'ab'),
  ($$ error_type => '*' $$, 'abcde'),
  ($$ error_type => 'IO?Error' $$, 'e'),
  ($$ error_type => 'IO_Error' $$, 'e'),
  ($$ error_type => 'IO%Error' $$, ''),
  ($$ error_type => 'I_Error' $$, ''),
  ($$ error_type => 'IO*Error' $$, 'de'),
  ($$ error_type => '100%_done' $$, 'c'),
  ($$ error_type => '100?_done' $$, 'c'),
  ($$ error_type => '1*_*' $$, 'c'),
  ($$ error_type => 'timeoutexception' $$, ''),
  ($$ error_type => '\\' $$, ''),
  ($$ error_type => E'Timeout\\' $$, ''),
  ($$ error_type => '' $$, ''),
  ($$ error_class => 'PERMANENT' $$, 'abcdf'),
  ($$ error_class => 'TRANSIENT' $$, 'e'),
  ($$ error_class => 'AMBIGUOUS' $$, ''),
  ($$ dead_reason => 'PERMANENT' $$, 'abcdf'),
  ($$ dead_reason => 'CANCELLED' $$, 'e'),
  ($$ dead_reason => 'EXHAUSTED' $$, ''),
  ($$ fingerprint => rdq.fingerprint('charge', 'IOError', 'it broke') $$, 'd'),
  ($$ fingerprint => '0123456789abcdef' $$, ''),
  ($$ since => clock_timestamp() - interval '150 minutes' $$, 'def'),
  ($$ until => clock_timestamp() - interval '150 minutes' $$, 'abc'),
  ($$ since => clock_timestamp() - interval '270 minutes', until => clock_timestamp() - interval '90 minutes' $$, 'bcd'),
  ($$ since => (select max(l.dead_at) from rdq.dead_letters l) $$, 'f'),
  ($$ until => (select min(l.dead_at) from rdq.dead_letters l) $$, ''),
  ($$ since => '-infinity', until => 'infinity' $$, 'abcdef'),
  ($$ queue => 'payments.eu', handler => 'charge', error_type => '*Timeout*', error_class => 'PERMANENT',
    dead_reason => 'PERMANENT', since => clock_timestamp() - interval '270 minutes', until => clock_timestamp() $$, 'b'),
  ($$ queue => null, handler => null, error_type => 'IO*', error_class => null, dead_reason => null, fingerprint => null,
    since => null, until => null $$, 'de');

update sample s set acts = false
where trim(s.filter) in ('', 'queue => null');
update sample s set filter = regexp_replace(s.filter, '\s+', ' ', 'g');

select plan(4 * count(*)::integer - 4) from sample;

select rdq.create_queue('empty');
select count(rdq.create_queue(q.queue)) from (select distinct l.queue from letter l) q;

do $$
declare
  l record;
  id uuid;
begin
  for l in select * from letter order by hours desc loop
    id := rdq.submit(l.queue, l.handler, l.name, run_at => '2999-01-01', error => jsonb_build_object(
      'type', l.error_type, 'class', l.class, 'message', 'it broke'));
    if l.class = 'TRANSIENT' then
      perform rdq.cancel(id);
    end if;
    update rdq.dead d set dead_at = d.dead_at - make_interval(hours => l.hours) where d.task_id = id;
  end loop;
end
$$;

create function pg_temp.names(statement text) returns text
language plpgsql
as $$
declare
  found_names text;
begin
  execute format('select string_agg(convert_from(t.payload, %L), %L order by t.payload) from rdq.task t where t.id in (%s)',
    'UTF8', '', statement) into found_names;
  return coalesce(found_names, '');
end
$$;

select is(
  pg_temp.names(format('select d.task_id from rdq.dead_letters(%s) d', s.filter)), s.found, 'dead_letters:' || s.filter)
from sample s;

create function pg_temp.count_of(statement text) returns integer
language plpgsql
as $$
declare
  answer integer;
begin
  execute statement into answer;
  return answer;
end
$$;

select is(
  pg_temp.count_of(format('select sum(g.count) from rdq.dead_letter_groups(%s) g', s.filter)),
  nullif(length(s.found), 0),
  'dead_letter_groups:' || s.filter)
from sample s;

-- What the list shows is what an action would touch; it has to say something, and name a queue that exists.
select is(
  pg_temp.count_of(format('select r.matched from rdq.redrive_where(%s, dry_run => true) r', s.filter)),
  length(s.found), 'redrive_where:' || s.filter)
from sample s
where s.acts;
select is(
  pg_temp.count_of(format('select p.remaining from rdq.purge_where(%s, dry_run => true) p', s.filter)),
  length(s.found), 'purge_where:' || s.filter)
from sample s
where s.acts;

select * from finish();
rollback;
