begin;
\ir ../helpers/common.psql
select plan(3);

select rdq.create_queue(q.name) from (values ('a'), ('b')) q (name);
select pg_temp.write_dead(q.name, 10003) from (values ('a'), ('b')) q (name);
select r.redrive_id as first from rdq.redrive_where(queue => 'a') r \gset
select r.redrive_id as second from rdq.redrive_where(queue => 'b') r \gset

select t.redriven from rdq.tick(max_tasks => 4) t \gset
select ok(:redriven between 1 and 4, 'of two running redrives at most max_tasks tasks');
select is(count(*), 6::bigint - :redriven, 'as many as it says were sent') from rdq.dead;
do $$
begin
  for turn in 1..3 loop
    perform rdq.tick(max_tasks => 4);
  end loop;
end
$$;
select is(
  array[f.state, s.state], '{DONE,DONE}', 'each comes to its end')
from rdq.redrive_status(:'first') f
cross join rdq.redrive_status(:'second') s;

select * from finish();
rollback;
