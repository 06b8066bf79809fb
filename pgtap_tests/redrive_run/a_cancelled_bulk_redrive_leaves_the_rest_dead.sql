begin;
\ir ../helpers/common.psql
select plan(9);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 10003);
select * from rdq.redrive_where(queue => 'q') \gset
select rdq.cancel_redrive(:'redrive_id', 'enough');

select is(array[s.state, s.sent::text], '{CANCELLED,10000}', 'it says so') from rdq.redrive_status(:'redrive_id') s;
select ok(s.finished_at >= s.began_at, 'and when') from rdq.redrive_status(:'redrive_id') s;
select is(t.redriven, 0::bigint, 'a tick does not carry it on') from rdq.tick() t;
select is(count(*), 3::bigint, 'the rest stays dead') from rdq.dead_letters;
select is(count(*), 10000::bigint, 'what was sent goes on') from rdq.due;
select throws_ok(format('select rdq.%I(%L)', f.name, :'redrive_id'), 'RD004', null, f.name || ' is refused')
from (values ('pause_redrive'), ('resume_redrive'), ('cancel_redrive')) f (name);
select ok(e.message like '%CANCELLED%', 'the message names its state: ' || e.message)
from pg_temp.error_of(format('select rdq.resume_redrive(%L)', :'redrive_id')) e;

select * from finish();
rollback;
