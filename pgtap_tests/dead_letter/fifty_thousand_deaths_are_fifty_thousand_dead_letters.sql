-- Trouble case E5, whole: no cap drops any, nor does upkeep.
begin;
\ir ../helpers/time.psql
select plan(5);

select rdq.create_queue('q');
create temporary table batch as
select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', i.number, 'error', '{"class": "PERMANENT"}'::jsonb)) as tasks
from generate_series(1, 1000) i (number);
do $$
begin
  for i in 1 .. 50 loop
    perform count(*) from batch b cross join rdq.submit_many('q', b.tasks);
  end loop;
end
$$;

select is(count(*), 50000::bigint, 'every death is a dead letter') from rdq.dead_letters;
select is(array_agg(g.count), '{50000}', 'and counted') from rdq.dead_letter_groups() g;
select is(sum(t.count), 50000::numeric, 'at its time') from rdq.dead_letter_timeline() t;
select pg_temp.pass('10 years');
select t.* from rdq.tick() t;
select t.* from rdq.tick() t;
select is(count(*), 50000::bigint, 'ten years later too') from rdq.dead_letters;
select is_empty($$ select from rdq.audit_log where action <> 'create_queue' $$, 'nothing was deleted');

select * from finish();
rollback;
