begin;
select plan(7);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'late', 'x', give_up_at => clock_timestamp() + interval '1 hour') as late \gset
select rdq.submit('q', 'early', 'x', give_up_at => clock_timestamp() + interval '3 hours') as early \gset
select rdq.submit('q', 'endless', 'x') as endless \gset
select pg_temp.pass('2 hours');

select results_eq(
  $$ select handler from rdq.claim('{q}', 'tester', 10) order by handler $$, $$ values ('early'), ('endless') $$,
  'a claim returns the others'
);
select is(row(status, dead_reason, attempt_count)::text, '(DEAD,DEADLINE,0)', 'the late one is dead, without an attempt')
from rdq.tasks
where task_id = :'late';
select is(pg_temp.history_of(:'late'), '', 'and nothing is invented in its history');
select is(row(handler, dead_reason, attempts)::text, '(late,DEADLINE,0)', 'it is a dead letter like any other')
from rdq.dead_letters;
select ok(
  dead_at > transaction_timestamp() and dead_at <= clock_timestamp(), 'from now, not from its deadline'
)
from rdq.dead_letters;

-- With failures behind it, the last one is what a person sees.
select rdq.submit('q', 'tried', 'x', give_up_at => clock_timestamp() + interval '1 hour') as tried \gset
select pg_temp.fail_one('q', error_type => 'bank.Down');
select pg_temp.pass('2 hours');
select is_empty(
  $$ select * from rdq.claim('{q}', 'tester') $$, 'a task that has failed before its deadline is not run after it'
);
select is(row(dead_reason, error_type, error_class)::text, '(DEADLINE,bank.Down,TRANSIENT)', 'its dead letter shows the last error')
from rdq.dead_letters
where task_id = :'tried';

select * from finish();
rollback;
