begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(10);

select rdq.create_queue('q');
select rdq.pause_queue('q', E'the bank\nis down');
select is(pg_temp.found('q'), null, 'a queue that was just paused');
select pg_temp.pass('23 hours');
select is(pg_temp.found('q'), null, 'or in which nothing is due');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01');
select pg_temp.pass('2 hours');
select is(pg_temp.found('q'), 'info: paused for 25 hours (the bank is down); nothing in it is due', 'for a day');

select rdq.submit('q', 'h', 'x');
select is(pg_temp.found('q'), null, 'work that has come just now');
select pg_temp.pass('2 minutes');
select is(
  pg_temp.found('q'), 'warning: paused for 25 hours (the bank is down) while 1 task is due, the oldest for 2 minutes',
  'work that waits for longer, with the reason');
select is(d.advice, $$select rdq.resume_queue('q');$$, 'the advice resumes it, and has nothing of the reason')
from rdq.doctor() d where d.subject = 'q';

select rdq.resume_queue('q');
select matches(pg_temp.found('q'), '^warning: 1 task is due', 'resumed it is a queue like any other');
select rdq.pause_queue('q');
select is(pg_temp.found('q'), null, 'paused a moment ago it is not forgotten, however long the work has waited');
select pg_temp.pass('2 minutes');
select matches(pg_temp.found('q'), '^warning: paused for 2 minutes while 1 task', 'a pause without a reason');
select rdq.purge(t.task_id) from rdq.tasks t cross join lateral rdq.cancel(t.task_id) c;
select is(count(*), 0::bigint, 'nothing in it, nothing to tell') from rdq.doctor() d where d.severity <> 'info';

select * from finish();
rollback;
