begin;
\ir ../helpers/common.psql
select plan(9);

select rdq.create_queue('eu', '{"max_attempts": 1}');
select rdq.create_queue('us', '{"max_attempts": 1}');

-- Fails the next task of a queue.
create function pg_temp.fail_one(queue text, code_version text, error_type text, message text) returns void
language sql
begin atomic
  select f.status
  from rdq.claim(array[queue], 'tester', code_version => fail_one.code_version) c
  cross join lateral rdq.fail(c.task_id, c.claim_token, fail_one.error_type, fail_one.message, error_class => 'TRANSIENT') f;
end;

select rdq.submit('eu', 'charge', 'x');
select pg_temp.fail_one('eu', 'v1', 'Timeout', 'order 1: no answer');
select rdq.submit('us', 'charge', 'x');
select pg_temp.fail_one('us', 'v2', 'Timeout', 'order 2: no answer');
select rdq.submit('eu', 'charge', 'x') as newest \gset
select pg_temp.fail_one('eu', null, 'Timeout', 'order 3: no answer');
select rdq.submit('eu', 'charge', 'x', error => '{"type": "Parse", "message": "bad", "class": "PERMANENT"}');
select rdq.submit('eu', 'refund', 'x', run_at => '2999-01-01') as cancelled \gset
select rdq.cancel(:'cancelled');

select results_eq(
  $$
    select handler, error_type, count, queues, dead_reasons, error_classes, code_versions
    from rdq.dead_letter_groups()
    where error_type is not null
  $$,
  $$
    values
      ('charge', 'Timeout', 3::bigint, '{eu,us}'::text[], '{EXHAUSTED}'::text[], '{TRANSIENT}'::text[], '{v1,v2}'::text[]),
      ('charge', 'Parse', 1, '{eu}', '{PERMANENT}', '{PERMANENT}', null)
  $$,
  'the largest group first');
select is(count(*), 1::bigint, 'one without any error is a group too')
from rdq.dead_letter_groups() g where g.handler = 'refund' and g.dead_reasons = '{CANCELLED}' and g.count = 1;
select is(
  array[g.first_dead_at, g.last_dead_at],
  (select array[min(d.dead_at), max(d.dead_at)] from rdq.dead_letters d where d.error_type = 'Timeout'),
  'first and last seen')
from rdq.dead_letter_groups() g where g.error_type = 'Timeout';
select is(d.message, g.sample_message, 'a sample, with its message')
from rdq.dead_letter_groups() g
join rdq.dead_letters d on d.task_id = g.sample_task_id
where g.error_type = 'Timeout';
select is(array_agg(distinct d.fingerprint), array_agg(distinct g.fingerprint), 'the fingerprint finds the group')
from rdq.dead_letter_groups() g
cross join lateral rdq.dead_letters(fingerprint => g.fingerprint) d;
select is(sum(g.count), 5::numeric, 'every dead letter is in one group') from rdq.dead_letter_groups() g;

select is(g.count, 2::bigint, 'a filter comes before the count')
from rdq.dead_letter_groups(queue => 'eu', error_type => 'Time*') g;
select is(array_agg(g.error_type), '{Timeout}', 'max_rows takes the largest')
from rdq.dead_letter_groups(max_rows => 1) g;
select rdq.create_queue('empty');
select is_empty($$ select * from rdq.dead_letter_groups(queue => 'empty') $$, 'none of none');

select * from finish();
rollback;
