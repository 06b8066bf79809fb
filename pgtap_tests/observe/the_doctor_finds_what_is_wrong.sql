begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(18);

-- The findings about a subject, as severity and text.
create function pg_temp.found(subject text) returns setof text
language sql
begin atomic
  select d.severity || ': ' || d.finding from rdq.doctor() d where d.subject = found.subject;
end;

select is_empty($$ select * from rdq.doctor() $$, 'nothing is wrong with an empty installation');
select rdq.create_queue(q.name) from unnest('{idle,paused,crashed,dead,lost,ticketless}'::text[]) q (name);
select rdq.submit('idle', 'h', 'x');
select rdq.submit('idle', 'h', 'x', run_at => '2999-01-01');
select is_empty($$ select * from rdq.doctor() $$, 'nor with work that waits for a moment');

select pg_temp.pass('4 minutes');
select is_empty($$ select * from rdq.doctor() $$, 'or for four minutes');
select pg_temp.pass('3 minutes');
select matches(f.finding, 'warning: 1 tasks? .*00:07:', 'nobody works on what is due')
from pg_temp.found('idle') f (finding);
select rdq.pause_queue('idle');
select rdq.purge_where(queue => 'idle');
select rdq.cancel(t.task_id) from rdq.tasks t;
select rdq.purge_where(queue => 'idle');

select rdq.submit('paused', 'h', 'x');
select rdq.pause_queue('paused', 'the bank is down');
select pg_temp.pass('2 minutes');
select ok(
  d.severity = 'warning' and d.advice like '%the bank is down%', 'a paused queue in which work waits, with the reason')
from rdq.doctor() d where d.subject = 'paused';
select rdq.resume_queue('paused');
select is(count(*), 0::bigint, 'resumed it is well') from pg_temp.found('paused');

select rdq.submit('crashed', 'h', 'x');
select count(*) from rdq.claim(array['crashed'], 'tester');
select is(count(*), 0::bigint, 'a task that is held') from pg_temp.found('crashed');
select pg_temp.pass('2 minutes');
select matches(f.finding, 'warning: 1 lease.*expired', 'and one whose worker is gone')
from pg_temp.found('crashed') f (finding);

select pg_temp.write_dead('dead', 3);
select pg_temp.pass('3 hours');
select matches(f.finding, 'info: 3 dead letters.*03:00:0', 'dead letters, and for how long')
from pg_temp.found('dead') f (finding);

select rdq.submit('lost', 'h', 'x');
delete from rdq.queue q where q.queue = 'lost';
select matches(f.finding, 'error: .*does not exist', 'tickets of a queue that was removed by hand')
from pg_temp.found('lost') f (finding);

select rdq.submit('ticketless', 'h', 'x') as id \gset
delete from rdq.due d where d.task_id = :'id';
select is(t.status, null, 'a task whose ticket was removed by hand has no state')
from rdq.tasks t
where t.task_id = :'id';
select ok(count(*) > 0, 'and is found')
from rdq.doctor() d where d.severity = 'error' and concat(d.subject, d.finding, d.advice) ~ ('ticketless|' || :'id');

set local default_transaction_isolation = 'repeatable read';
select matches(f.finding, 'warning: .*repeatable read', 'another isolation level than rdq is made for')
from pg_temp.found('database') f (finding);
set local default_transaction_isolation = 'read committed';
select is(count(*), 0::bigint, 'with the usual one it is well') from pg_temp.found('database');

select ok(bool_and(d.severity in ('info', 'warning', 'error')), 'each finding has a severity') from rdq.doctor() d;
select ok(bool_and(length(d.advice) > 20), 'and an advice') from rdq.doctor() d;
select ok(bool_and(d.subject > '' and d.finding > ''), 'a subject and words') from rdq.doctor() d;
select ok(bool_and(d.finding !~ '%'), 'words that are complete') from rdq.doctor() d;

select * from finish();
rollback;
