begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(6);

select rdq.create_queue('q', '{"keep_dead": 0}');
select rdq.create_queue('r');
select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
select count(*) from rdq.claim('{q}', 'tester', 2) c;
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '1 hour') as late \gset
select pg_temp.write_dead('q', 3);
select pg_temp.pass('1 day');

select t.problems is null as well from rdq.tick(queues => '{r}') t \gset
select ok(:'well', 'where all goes well there is no problem');
create or replace function rdq._give_up(max_tasks integer, queues text[]) returns bigint
language plpgsql
as $$
begin
  update rdq.queue set pause_reason = 'half done';
  raise exception 'the disk is full' using errcode = '53100';
end
$$;
select * from rdq.tick() \gset
select is(:'problems'::text[], '{"deadlines: the disk is full (53100)"}', 'what failed is told');
select is(array[:reclaimed, :given_up, :redriven, :purged], '{2,0,0,3}', 'the others go on');
select is(pg_temp.status_of(:'late'), 'PENDING', 'what failed has done nothing');
select is(count(*), 0::bigint, 'nor half of it') from rdq.queue where pause_reason is not null;
select is(t.problems, '{"deadlines: the disk is full (53100)"}', 'it is told each time') from rdq.tick() t;

select * from finish();
rollback;
