-- 5,000 tasks fail at one moment, in one transaction and one batch: their next attempts are spread over the
-- documented band, since each draws a delay of its own.
begin;
select plan(7);

select rdq.create_queue('q', '{"backoff_base": "100 s", "jitter": 0.2}');
select count(*)
from rdq.submit_many('q', to_jsonb(array_fill('{"handler": "h", "payload": "x"}'::jsonb, array[5000])));
create temp table held as select task_id, claim_token from rdq.claim('{q}', 'tester', 5000);

create temp table seen as
select r.*, clock_timestamp() as seen_at
from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held) h
cross join lateral rdq.report(h.ids, h.tokens, array_fill('{"class": "TRANSIENT"}'::jsonb, array[5000])) r;
analyze rdq.due, rdq.attempt, seen;

select is(count(*), 5000::bigint, 'all 5,000 failures are answered')
from seen
where status = 'PENDING' and not stale;
select cmp_ok(count(distinct due_at), '>', 2000::bigint, 'with thousands of different due times')
from rdq.due;
select is_empty(
  $$
    select *
    from seen s
    join rdq.attempt a on a.task_id = s.task_id
    where s.next_attempt_at not between a.finished_at + interval '80 s' and s.seen_at + interval '120 s'
  $$,
  'all within a fifth around 100 seconds'
);
-- 5,000 over 40 seconds are 125 a second.
select cmp_ok(max(size), '<', 250::bigint, 'no second has more than a twentieth of them')
from (select count(*) as size from rdq.due group by date_trunc('second', due_at)) s;
select is(count(*), 10::bigint, 'and each tenth of the band has its share')
from (
  select count(*) as size
  from rdq.due d
  cross join (select extract(epoch from min(due_at)) as first, extract(epoch from max(due_at)) as last from rdq.due) band
  group by width_bucket(extract(epoch from d.due_at), band.first, band.last + 0.001, 10)
) tenth
where size > 350;
select cmp_ok(max(due_at) - min(due_at), '>', interval '39 s', 'the whole band is used') from rdq.due;
select is(count(*), 0::bigint, 'nothing is due before its time') from rdq.claim('{q}', 'tester', 5000);

select * from finish();
rollback;
