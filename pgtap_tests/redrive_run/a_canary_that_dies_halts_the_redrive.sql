begin;
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql
select plan(12);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 30);
select * from rdq.redrive_where(queue => 'q', canary => 3) \gset
select rdq.complete(task_id, claim_token) from pg_temp.claim_one('q');
select is(pg_temp.fail_one('q', 'PERMANENT'), 'DEAD', 'one of three dies again');
select is(t.redriven, 0::bigint, 'a tick sends no more') from rdq.tick() t;

select is(
  array[s.state, s.state_reason, s.sent::text, s.succeeded::text, s.died::text, s.undecided::text],
  array['HALTED', '1 of a canary of 3 died again', '3', '1', '1', '1'], 'it has halted, and says why')
from rdq.redrive_status(:'redrive_id') s;
select is(count(*), 27::bigint, 'all but the canary is untouched') from rdq.dead where life = 0;
select is(
  array[a.actor, a.affected::text, a.reason], array[current_user::text, '27', '1 of a canary of 3 died again'],
  'the audit has how many it spared')
from rdq.audit_log a
where a.action = 'halt_redrive' and a.redrive_id = :'redrive_id';
select is(d.redrive_id, :'redrive_id', 'a dead letter that died again names its redrive')
from rdq.dead d where d.life = 1;

select rdq.complete(task_id, claim_token) from pg_temp.claim_one('q');
select is(t.redriven, 0::bigint, 'halted it stays') from rdq.tick() t;
select throws_ok(format('select rdq.pause_redrive(%L)', :'redrive_id'), 'RD004', null, 'it is not paused');
select rdq.resume_redrive(:'redrive_id', 'the bad one is known');
select is(t.redriven, 27::bigint, 'resumed it goes on without a canary') from rdq.tick() t;
select is(array[s.state, s.sent::text, s.succeeded::text, s.died::text], '{DONE,30,2,1}', 'and is done')
from rdq.redrive_status(:'redrive_id') s;
select is(count(*), 1::bigint, 'only the one that died again is dead') from rdq.dead_letters;
select set_eq(
  format('select action from rdq.audit_log where redrive_id = %L', :'redrive_id'),
  '{redrive_where,halt_redrive,resume_redrive,finish_redrive}'::text[], 'each step is audited');

select * from finish();
rollback;
