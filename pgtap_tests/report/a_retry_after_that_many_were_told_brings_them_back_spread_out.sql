-- https://github.com/NousResearch/hermes-agent/issues/109234
begin;
\ir ../helpers/common.psql
select plan(7);

select rdq.create_queue('q', '{"backoff_base": "1 second", "jitter": 0.5}');
select count(rdq.submit('q', 'h', 'x')) from generate_series(1, 400);
select r.status, count(*)
from (
  select array_agg(c.task_id) as ids, array_agg(c.claim_token) as tokens from rdq.claim('{q}', 'tester', 400) c
) c
cross join lateral rdq.report(
  c.ids, c.tokens, array_fill('{"class": "TRANSIENT", "retry_after": 60}'::jsonb, array[400])
) r
group by r.status;

create temporary table wait as
select extract(epoch from d.due_at - a.finished_at) as seconds
from rdq.due d
join rdq.attempt a on a.task_id = d.task_id;
select cmp_ok(min(w.seconds), '>=', 60::numeric, 'none comes earlier') from wait w;
select cmp_ok(max(w.seconds), '<=', 90::numeric, 'none later than the jitter says') from wait w;
select cmp_ok(max(w.seconds) - min(w.seconds), '>', 20::numeric, 'they are spread out') from wait w;
select cmp_ok(max(c.count), '<', 60::bigint, 'evenly')
from (select count(*) from wait w group by floor(w.seconds / 3)) c;

select rdq.alter_queue('q', '{"jitter": 0}');
select rdq.submit('q', 'h', 'x', error => '{"class": "TRANSIENT", "retry_after": 60}') as id \gset
select is(extract(epoch from d.due_at - a.finished_at)::integer, 60, 'without jitter it is exact')
from rdq.due d
join rdq.attempt a on a.task_id = d.task_id
where d.task_id = :'id';
select rdq.alter_queue('q', '{"jitter": 1}');
select rdq.submit('q', 'h', 'x') as id \gset
select rdq.release(array[c.task_id], array[c.claim_token], 'busy', delay => '60 seconds') from rdq.claim('{q}', 'tester') c;
select is(extract(epoch from d.due_at - a.finished_at)::integer, 60, 'the delay of a release always is')
from rdq.due d
join rdq.attempt a on a.task_id = d.task_id
where d.task_id = :'id';

select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '70 seconds') from generate_series(1, 50);
select r.status, count(*)
from (
  select array_agg(c.task_id) as ids, array_agg(c.claim_token) as tokens from rdq.claim('{q}', 'tester', 100) c
) c
cross join lateral rdq.report(
  c.ids, c.tokens, array_fill('{"class": "TRANSIENT", "retry_after": 60}'::jsonb, array[cardinality(c.ids)])
) r
group by r.status;
select is(count(*), 0::bigint, 'none for which there is time is drawn past its deadline') from rdq.dead;

select * from finish();
rollback;
