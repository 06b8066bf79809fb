begin;
select plan(4);

select rdq.create_queue('q');
create temporary table answered as
select row_number() over () as place, a.id
from rdq.submit_many('q', (
  select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', i.number) order by i.number)
  from generate_series(1, 10000) i (number)
)) a (id);

select is(count(distinct a.id), 10000::bigint, 'an id for each') from answered a;
select is(
  count(*), 10000::bigint, 'in order')
from answered a join rdq.task t on t.id = a.id where t.payload = convert_to(a.place::text, 'UTF8');
select is(count(*), 10000::bigint, 'a ticket for each') from rdq.due;
select is(count(*), 10000::bigint, 'a claim may take them all')
from rdq.claim(array['q'], 'tester', max_tasks => 10000);

select * from finish();
rollback;
