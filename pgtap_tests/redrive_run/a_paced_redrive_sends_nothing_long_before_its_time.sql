begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(11);

select rdq.create_queue('q');
-- One in four seconds: a slow machine has that time to come from one statement to the next.
select pg_temp.write_dead('q', 16);
select * from rdq.redrive_where(queue => 'q', per_second => 0.25) \gset
select is(array[:'state', :'matched', :'sent'], '{RUNNING,16,3}', 'what is due within ten seconds is sent');
select is(t.redriven, 0::bigint, 'a tick at once adds nothing') from rdq.tick() t;
select pg_temp.pass('10 seconds');
select is(t.redriven, 3::bigint, 'one after ten seconds adds what ten seconds hold') from rdq.tick() t;
select is(count(*), 6::bigint, 'it goes on where it stopped: four seconds from each to the next')
from (select due_at - lag(due_at) over (order by due_at) as gap from rdq.due) d
where coalesce(d.gap, '4 s') between interval '3.9 seconds' and interval '4 seconds';

-- While it is paused time passes; it does not catch up.
select rdq.pause_redrive(:'redrive_id');
select pg_temp.pass('1 hour');
select is(t.redriven, 0::bigint, 'paused it sends nothing') from rdq.tick() t;
select rdq.resume_redrive(:'redrive_id');
select is(t.redriven, 3::bigint, 'resumed it sends what is due within ten seconds, and no burst') from rdq.tick() t;
select pg_temp.pass('20 seconds');
select is(t.redriven, 3::bigint, 'nor does it catch up when no tick came for a while') from rdq.tick() t;
select pg_temp.pass('20 seconds');
select is(t.redriven, 3::bigint, 'so it goes on') from rdq.tick() t;
select pg_temp.pass('20 seconds');
select is(t.redriven, 1::bigint, 'to the last') from rdq.tick() t;
select is(array[s.state, s.sent::text], '{DONE,16}', 'all are sent') from rdq.redrive_status(:'redrive_id') s;

select pg_temp.write_dead('q', 100);
select * from rdq.redrive_where(queue => 'q', spread => '500 seconds') \gset
select is(array[s.sent::text, s.per_second::text], '{3,0.2}', 'a spread is a pace')
from rdq.redrive_status(:'redrive_id') s;

select * from finish();
rollback;
