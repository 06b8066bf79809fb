begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(10);

select rdq.create_queue(q.name, '{"keep_succeeded": "10 minutes", "keep_dead": "10 minutes", "ladder": [0], "vanish_limit": 99}')
from (values ('a'), ('b'), ('c')) q (name);
select rdq.submit(q.name, 'h', 'done') from (values ('a'), ('b'), ('c')) q (name) cross join generate_series(1, 3);
select rdq.complete(c.task_id, c.claim_token) from rdq.claim(array['a', 'b', 'c'], 'tester', max_tasks => 99) c;
select pg_temp.write_dead(q.name, 3) from (values ('a'), ('b'), ('c')) q (name);
select rdq.submit(q.name, 'h', 'held') from (values ('a'), ('b'), ('c')) q (name) cross join generate_series(1, 3);
select count(*) from rdq.claim(array['a', 'b', 'c'], 'tester', max_tasks => 99);
select rdq.submit(q.name, 'h', 'late', give_up_at => clock_timestamp() + interval '1 minute')
from (values ('a'), ('b'), ('c')) q (name) cross join generate_series(1, 3);
select pg_temp.pass('30 minutes');

create temporary table done (reclaimed bigint, given_up bigint, redriven bigint, purged bigint, problems text[]);
insert into done select * from rdq.tick(max_tasks => 4);
select is(d.reclaimed, 4::bigint, 'leases') from done d;
select is(d.given_up, 4::bigint, 'deadlines') from done d;
select is(d.purged, 4::bigint, 'what retention lets go, over all queues') from done d;
select is(count(*), 14::bigint, 'as many as it says are gone')
from rdq.task t where convert_from(t.payload, 'UTF8') in ('done', 'x');

do $$
begin
  for turn in 1..10 loop
    insert into done select * from rdq.tick(max_tasks => 4);
  end loop;
end
$$;
select is(max(d.reclaimed), 4::bigint, 'none did more') from done d;
select is(max(d.given_up), 4::bigint, 'of any') from done d;
select is(max(d.purged), 4::bigint, 'kind') from done d;
select is(
  array[sum(d.reclaimed), sum(d.given_up), sum(d.purged)], array[9, 9, 18]::numeric[],
  'all was done in the end') from done d;

select is(e.code, 'RD002', format('max_tasks => %s', s.given))
from (values ('0'), ('10001')) s (given)
cross join pg_temp.error_of(format('select * from rdq.tick(max_tasks => %s)', s.given)) e;

select * from finish();
rollback;
