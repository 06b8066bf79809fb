begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/doctor.psql
select plan(9);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 20);
select r.redrive_id as id from rdq.redrive_where(queue => 'q', per_second => 0.001) r \gset
select is(pg_temp.found('redrive ' || :'id'), null, 'one that runs');
select rdq.pause_redrive(:'id', E'wait for\nthe bank');
select is(pg_temp.found('redrive ' || :'id'), 'warning: paused after 1 of 20: wait for the bank', 'one that is paused');
select is(d.advice ~ ('^select rdq.resume_redrive\(''' || :'id' || '''\);'), true, 'the advice resumes it')
from rdq.doctor() d where d.subject like 'redrive%';
select rdq.resume_redrive(:'id');
select is(pg_temp.found('redrive ' || :'id'), null, 'resumed it is well');

select pg_temp.pass('30 minutes');
select is(
  pg_temp.found('redrive ' || :'id'), 'warning: running, though no runner was seen in the last 30 seconds to carry it on, now after 1 of 20',
  'one that nobody carries on');
select rdq.runner_seen('r', 'host', rdq.version());
select is(pg_temp.found('redrive ' || :'id'), null, 'unless a runner lives');
select rdq.runner_gone('r');
select rdq.tick();
select is(pg_temp.found('redrive ' || :'id'), null, 'or somebody ticks');

update rdq.redrive_run r set state = 'HALTED', state_reason = '5 of 6 that have ended died again';
select is(
  pg_temp.found('redrive ' || :'id'), 'warning: halted after 2 of 20: 5 of 6 that have ended died again', 'one that has halted');
select rdq.cancel_redrive(:'id');
select is(pg_temp.found('redrive ' || :'id'), null, 'one that is over');

select * from finish();
rollback;
