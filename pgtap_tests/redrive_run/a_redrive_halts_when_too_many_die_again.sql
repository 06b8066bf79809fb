begin;
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql
\ir ../helpers/time.psql
select plan(13);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 500);
select * from rdq.redrive_where(queue => 'q', per_second => 1, halt_at => 0.4, halt_min => 5) \gset
select is(:'sent'::text, '11', 'what is due within ten seconds is sent');
select pg_temp.pass('20 seconds');
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester', 3) c;
select is(pg_temp.fail_one('q', 'PERMANENT'), 'DEAD', 'the fourth dies again');
select ok(t.redriven > 0, 'too few have ended to judge') from rdq.tick() t;
select pg_temp.pass('20 seconds');
select is(pg_temp.fail_one('q', 'PERMANENT'), 'DEAD', 'so does the fifth');
select s.sent as sent_so_far from rdq.redrive_status(:'redrive_id') s \gset
select is(t.redriven, 0::bigint, 'two of five are enough') from rdq.tick() t;
select is(array[s.state, s.state_reason], array['HALTED', '2 of 5 that have ended died again'], 'it has halted')
from rdq.redrive_status(:'redrive_id') s;

-- What it sent before goes on; whatever becomes of it is counted.
select is(pg_temp.fail_one('q', 'PERMANENT'), 'DEAD', 'a sixth ends while it stands still');
select rdq.tick();
select is(array[s.state, s.died::text, s.sent::text], array['HALTED', '3', :'sent_so_far'], 'it is counted')
from rdq.redrive_status(:'redrive_id') s;
select rdq.resume_redrive(:'redrive_id');
select ok(t.redriven > 0, 'resumed it goes on: what has ended is not held against it again') from rdq.tick() t;
select pg_temp.pass('20 seconds');
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester', 2) c;
select string_agg(pg_temp.fail_one('q', 'PERMANENT'), ' ') from generate_series(1, 3);
select rdq.tick();
select is(array[s.state, s.state_reason], array['HALTED', '3 of 5 that have ended died again'], 'but what ends after that is')
from rdq.redrive_status(:'redrive_id') s;

-- All of them die, but it was told not to mind.
select rdq.create_queue('p');
select pg_temp.write_dead('p', 100);
select * from rdq.redrive_where(queue => 'p', per_second => 5, halt_at => null) \gset
update rdq.due set due_at = clock_timestamp() where queue = 'p';
select string_agg(pg_temp.fail_one('p', 'PERMANENT'), ' ') from generate_series(1, 40);
select rdq.tick() from generate_series(1, 9);
select is(array[s.state, s.died::text], '{RUNNING,40}', 'without a share nothing halts it') from rdq.redrive_status(:'redrive_id') s;
select rdq.cancel_redrive(:'redrive_id');

select * from rdq.redrive_where(queue => 'p', per_second => 5) \gset
select is(array[s.halt_at::text, s.halt_min::text], '{0.5,20}', 'half of at least twenty where nothing is said')
from rdq.redrive_status(:'redrive_id') s;
select is(count(*), 2::bigint, 'it halted twice') from rdq.audit_log where action = 'halt_redrive';

select * from finish();
rollback;
