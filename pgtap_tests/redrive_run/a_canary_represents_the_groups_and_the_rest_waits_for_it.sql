begin;
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql
select plan(13);

select rdq.create_queue('q');
-- Six died of a, three of b, one of c; the last to die of each cause is known by its handler and number.
create temporary table died as
select rdq.submit('q', h.name, h.name || n, error => '{"class": "PERMANENT"}') as task_id, h.name || n as label
from (values ('a', 6), ('b', 3), ('c', 1)) h (name, many)
cross join lateral generate_series(1, h.many) n;
create function pg_temp.sent() returns text
language sql
begin atomic
  select string_agg(d.label, ' ' order by d.label) from died d join rdq.due using (task_id);
end;

select * from rdq.redrive_where(queue => 'q', canary => 5) \gset
select is(array[:'state', :'matched', :'sent'], '{RUNNING,10,5}', 'five are sent');
select is(pg_temp.sent(), 'a5 a6 b2 b3 c1', 'the newest of each group, then the second newest');
select is(t.redriven, 0::bigint, 'a tick sends no more') from rdq.tick() t;
select ok(s.canary_out, 'the canary is out') from rdq.redrive_status(:'redrive_id') s;

select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester', 3) c;
select is(pg_temp.fail_one('q'), 'PENDING', 'one of them fails for now');
select is(t.redriven, 0::bigint, 'what is only retried does not decide') from rdq.tick() t;
select is(array[s.state, s.succeeded::text, s.died::text, s.undecided::text], '{RUNNING,3,0,2}', 'two are undecided')
from rdq.redrive_status(:'redrive_id') s;
select rdq.complete(task_id, claim_token) from pg_temp.claim_one('q');
update rdq.due set due_at = clock_timestamp();
select is(t.redriven, 0::bigint, 'all but one is not all') from rdq.tick() t;
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester', 9) c;

select is(t.redriven, 5::bigint, 'when all have succeeded the rest is sent') from rdq.tick() t;
select is(pg_temp.sent(), 'a1 a2 a3 a4 b1', 'all of it');
select is(array[s.state, s.sent::text, s.succeeded::text, s.undecided::text, s.skipped::text], '{DONE,10,5,5,0}', 'it is done')
from rdq.redrive_status(:'redrive_id') s;

select * from rdq.redrive_where(queue => 'q', canary => 5) \gset
select is(array[:'state', :'matched'], '{DONE,0}', 'of nothing no canary is sent');
select is(count(*), 2::bigint, 'both are shown') from rdq.redrives;

select * from finish();
rollback;
