begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(8);

select rdq.create_queue('q', '{"keep_succeeded": "1 day"}');
select rdq.submit('q', 'h', 'x');
select rdq.complete(c.task_id, c.claim_token) from pg_temp.claim_one('q') c;
select pg_temp.pass('25 hours 50 minutes');
select is(pg_temp.found('q'), null, 'what should just have gone');
select pg_temp.pass('20 minutes');
select is(
  pg_temp.found('q'), 'warning: tasks that succeeded are kept for 24 hours, but the oldest ended 26 hours ago: retention does not keep up',
  'what should have gone long ago');
select is(d.advice ~ '^select \* from rdq.tick\(', true, 'the advice') from rdq.doctor() d where d.subject = 'q';
select rdq.alter_queue('q', '{"keep_succeeded": "forever"}');
select is(pg_temp.found('q'), null, 'what is kept for ever');
select rdq.alter_queue('q', '{"keep_succeeded": "1 day"}');
select rdq.tick();
select is(pg_temp.found('q'), null, 'after a tick');

select pg_temp.write_dead('q', 1);
select pg_temp.pass('3 days');
select is(pg_temp.found('q'), 'info: 1 dead letter, the oldest for 3 days', 'dead letters are kept for ever by default');
select rdq.alter_queue('q', '{"keep_dead": "2 days"}');
select matches(pg_temp.found('q'), 'warning: dead letters are kept for 2 days, but the oldest ended 3 days ago', 'unless they are not');
select rdq.alter_queue('q', '{"keep_dead": "3 days"}');
select is(pg_temp.found('q'), 'info: 1 dead letter, the oldest for 3 days', 'those that should just have gone');

select * from finish();
rollback;
