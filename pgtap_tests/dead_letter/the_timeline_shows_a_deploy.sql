begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
\ir ../helpers/time.psql
select plan(10);

select rdq.create_queue(q.queue, '{"max_attempts": 1}') from unnest('{a,b}'::text[]) q (queue);
select pg_temp.create_role('viewer', '{b}');

create function pg_temp.die(at timestamptz, queue text, code_version text, number integer) returns void
language plpgsql
as $$
declare
  held record;
begin
  for i in 1 .. number loop
    perform rdq.submit(queue, 'charge', 'x');
    select * into held from rdq.claim(array[queue], 'tester', code_version => die.code_version);
    perform rdq.fail(held.task_id, held.claim_token, 'Down', 'order 42', error_class => 'TRANSIENT');
    update rdq.dead set dead_at = at where task_id = held.task_id;
  end loop;
end
$$;

-- The hour that began two hours ago is h.
select date_bin('1 hour', clock_timestamp(), '2000-01-01Z') - interval '2 hours' as h \gset
select pg_temp.die(:'h'::timestamptz, 'a', 'v1', 1);
select pg_temp.die(:'h'::timestamptz + interval '59 minutes 59 seconds', 'b', 'v1', 1);
select pg_temp.die(:'h'::timestamptz + interval '30 minutes', 'a', 'v2', 3);
select pg_temp.die(:'h'::timestamptz + interval '60 minutes', 'a', 'v2', 4);
select pg_temp.die(:'h'::timestamptz - interval '3 days', 'a', 'v1', 1);
select rdq.submit('a', 'charge', 'x', error => '{"class": "PERMANENT", "type": "Parse"}') as other \gset
update rdq.dead set dead_at = :'h'::timestamptz where task_id = :'other';

select results_eq(
  $$ select bucket_at, handler, error_type, code_version, count from rdq.dead_letter_timeline() $$,
  format($$
    values
      (%1$L::timestamptz + interval '1 hour', 'charge', 'Down', 'v2', 4::bigint),
      (%1$L::timestamptz, 'charge', 'Down', 'v2', 3),
      (%1$L::timestamptz, 'charge', 'Down', 'v1', 2),
      (%1$L::timestamptz, 'charge', 'Parse', null, 1)
  $$, :'h'),
  'the newest hour first, in it the largest count; a day of it');
select results_eq(
  $$ select bucket_at, count from rdq.dead_letter_timeline(bucket => '30 minutes', error_type => 'Down', queue => 'a') $$,
  format($$
    values
      (%1$L::timestamptz + interval '60 minutes', 4::bigint),
      (%1$L::timestamptz + interval '30 minutes', 3),
      (%1$L::timestamptz, 1)
  $$, :'h'),
  'smaller buckets, of what matches');
select is(count(distinct t.fingerprint), 2::bigint, 'two causes') from rdq.dead_letter_timeline() t;
select is(sum(d.count), 11::numeric, 'longer buckets, of a week')
from rdq.dead_letter_timeline(bucket => '1 day') d;
select ok(bool_and(extract(epoch from d.bucket_at) % 86400 = 0), 'from midnight UTC')
from rdq.dead_letter_timeline(bucket => '1 day') d;
select is(
  array_agg(t.count), '{1}', 'a time that is given is kept to')
from rdq.dead_letter_timeline(since => :'h'::timestamptz - interval '10 days', until => :'h'::timestamptz) t;
select is(count(*), 2::bigint, 'at most so many rows') from rdq.dead_letter_timeline(max_rows => 2);
select is(
  pg_temp.as_role('rdq_test_viewer', 'select sum(count) from rdq.dead_letter_timeline()', h.by), '1',
  'a viewer sees that of his queues, by ' || h.by)
from unnest('{role,session}'::text[]) h (by);
select set_eq(
  $$ select t.fingerprint from rdq.dead_letter_timeline() t $$,
  $$ select g.fingerprint from rdq.dead_letter_groups() g $$,
  'the fingerprints are those of the groups');

select * from finish();
rollback;
