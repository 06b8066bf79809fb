-- Everything here happens in one long transaction, and yet in the order of the clock.
begin;
select plan(3);
\ir ../helpers/common.psql

select rdq.create_queue('q', '{"ladder": ["0 s"], "max_attempts": 2}');
create temp table moment (at timestamptz, what text, place integer generated always as identity);
select rdq.submit('q', 'h', 'x') as task \gset
insert into moment (at, what)
select transaction_timestamp(), 'the transaction begins'
union all
select created_at, 'submitted' from rdq.tasks
union all
select next_attempt_at, 'due' from rdq.tasks;
insert into moment (at, what) select claimed_at, 'claimed' from rdq.claim('{q}', 'tester');
select f.next_attempt_at from rdq.lease cross join lateral rdq.fail(task_id, claim_token, 'Down', error_class => 'TRANSIENT') f \gset
insert into moment (at, what)
select finished_at, 'failed' from rdq.history(:'task')
union all
select :'next_attempt_at', 'due again';
insert into moment (at, what) select claimed_at, 'claimed again' from rdq.claim('{q}', 'tester');
select f.status
from rdq.lease
cross join lateral rdq.fail(task_id, claim_token, 'Down', error_class => 'TRANSIENT') f;
insert into moment (at, what) select dead_at, 'dead' from rdq.dead_letters;
insert into moment (at, what) values (clock_timestamp(), 'now');

select is(
  string_agg(what, ', ' order by at, place),
  'the transaction begins, submitted, due, claimed, failed, due again, claimed again, dead, now', 'one after another'
)
from moment;
select cmp_ok(count(distinct at), '>=', 7::bigint, 'at different times') from moment;
select cmp_ok(min(at), '<', (select created_at from rdq.tasks), 'all of them after the transaction began')
from moment;

select * from finish();
rollback;
