begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql
select plan(8);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 60);
select * from rdq.redrive_where('q', per_second => 3, halt_at => 0.5, halt_min => 5) \gset
select is(c.cancelled, 20::bigint, 'many are cancelled') from rdq.cancel_where('q', max_tasks => 20) c;
select rdq.tick();
select is(concat_ws(' ', s.state, s.died, s.cancelled, s.undecided), 'RUNNING 0 20 ' || s.sent - 20, 'it goes on')
from rdq.redrive_status(:'redrive_id') s;
select rdq.cancel_redrive(:'redrive_id');
select rdq.cancel_where('q');
select rdq.tick();
select is(s.undecided, 0::bigint, 'all that was sent is counted') from rdq.redrive_status(:'redrive_id') s;
select ok(r.settled_at is not null, 'so it is settled') from rdq.redrive_run r;

-- A canary of which one is cancelled goes by the others; one of which all are cancelled says nothing.
select * from rdq.redrive_where('q', canary => 2, dead_reason => 'PERMANENT') \gset
select rdq.cancel((select task_id from rdq.due limit 1));
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester') c;
select rdq.tick();
select is(concat_ws(' ', s.state, s.canary_out, s.succeeded, s.cancelled), 'DONE f 1 1', 'a success is enough')
from rdq.redrive_status(:'redrive_id') s;
select rdq.create_queue('p');
select pg_temp.write_dead('p', 5);
select * from rdq.redrive_where('p', canary => 2) \gset
select is(c.cancelled, 2::bigint, 'the whole canary') from rdq.cancel_where('p') c;
select rdq.tick();
select is(s.state || ': ' || s.state_reason, 'HALTED: all of a canary of 2 were cancelled', 'it halts')
from rdq.redrive_status(:'redrive_id') s;
select is(s.sent, 2::bigint, 'the rest stays') from rdq.redrive_status(:'redrive_id') s;

select * from finish();
rollback;
