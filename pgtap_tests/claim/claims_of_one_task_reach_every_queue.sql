-- 200 claims of one task over four queues, the first of which has more than all of them take.
begin;
select plan(2);

select setseed(0.1);
select rdq.create_queue('q' || n) from generate_series(1, 4) n;
select count(rdq.submit('q1', 'h', 'x')) from generate_series(1, 300);
select count(rdq.submit(queue, 'h', 'x')) from unnest('{q2,q3,q4}'::text[]) queue, generate_series(1, 100);

create function pg_temp.claim_one_by_one(times integer) returns table (queue text)
language plpgsql
as $$
begin
  for i in 1 .. times loop
    return query select c.queue from rdq.claim('{q1,q2,q3,q4}', 'tester', 1) c;
  end loop;
end
$$;
create temp table claimed as select queue, count(*) as size from pg_temp.claim_one_by_one(200) group by queue;

select is(sum(size), 200::numeric, 'each claim has a task') from claimed;
-- 50 ± 6 each.
select is(count(*), 4::bigint, 'and every queue has a fair part of them') from claimed where size >= 20;

select * from finish();
rollback;
