begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(15);

select rdq.create_queue(q.name) from unnest('{q,other}'::text[]) q (name);
select rdq.submit('q', 'h', 'x');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01');

select is(pg_temp.found('q'), null, 'a task that is just due');
select pg_temp.pass('30 seconds');
select is(pg_temp.found('q'), null, 'for less than a minute');
select pg_temp.pass('40 seconds');
select matches(
  pg_temp.found('q'),
  '^warning: 1 task is due, the oldest for [78]\d seconds, and no runner of this queue was seen in the last 30 seconds; other workers are not seen until they claim$',
  'for longer, and nobody was seen');
select is(d.advice ~ '^rdq-runner run --queue q ', true, 'the advice starts one') from rdq.doctor() d where d.subject = 'q';

select rdq.runner_seen('r of other', 'host', rdq.version(), queues => '{other}');
select matches(pg_temp.found('q'), 'no runner of this queue was seen', 'a runner of another queue does not count');
select rdq.runner_seen('r1', 'host', rdq.version(), queues => '{other,q}');
select is(pg_temp.found('q'), null, 'a runner of this one does, and has five minutes');
select rdq.runner_gone('r1');
select matches(pg_temp.found('q'), 'no runner of this queue was seen', 'until it is gone');
select rdq.runner_seen('r2', 'host', rdq.version());
select is(pg_temp.found('q'), null, 'so does one of every queue');
select pg_temp.pass('6 minutes');
select is(
  pg_temp.found('q'), 'warning: 1 task is due, the oldest for 7 minutes, though 1 runner works on this queue',
  'with a runner that is alive');
select is(d.advice ~ '^select \* from rdq.runners ', true, 'the advice looks at the runners') from rdq.doctor() d where d.subject = 'q';
update rdq.runner r set seen_at = r.seen_at - interval '2 minutes';
select matches(
  pg_temp.found('q'), 'no runner of this queue was seen in the last 30 seconds \(the last one, r2, 2 minutes ago\)',
  'with one that is not');

select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
select count(*) from rdq.claim(array['q'], 'psql', lease => '1 hour');
select pg_temp.pass('2 minutes');
select is(pg_temp.found('q'), null, 'a worker without an entry is known by its leases');
select pg_temp.pass('4 minutes');
select is(
  pg_temp.found('q'),
  'warning: 2 tasks are due, the oldest for 6 minutes, though some worker holds leases; no runner of this queue was seen in the last 30 seconds',
  'and has five minutes too');

insert into rdq.due (task_id, queue, due_at, life)
select gen_random_uuid(), 'q', clock_timestamp() - interval '7 minutes', 0 from generate_series(1, 998);
select matches(pg_temp.found('q'), '^warning: 1000 tasks are due, the oldest for 7 minutes', 'a thousand are counted');
insert into rdq.due (task_id, queue, due_at, life) select gen_random_uuid(), 'q', clock_timestamp(), 0 from generate_series(1, 2);
select matches(pg_temp.found('q'), '^warning: more than 1000 tasks are due', 'more are not');

select * from finish();
rollback;
