begin;
\ir ../helpers/common.psql
select plan(33);

create temporary table refused as
select s.statement, e.*
from (values
  ('rdq.alter_queue(queue => %L, settings => ''{}'')'),
  ('rdq.drop_queue(queue => %L)'),
  ('rdq.pause_queue(queue => %L, reason => ''r'')'),
  ('rdq.resume_queue(queue => %L)'),
  ('rdq.submit(queue => %L, handler => ''h'', payload => ''x'')'),
  ('rdq.submit_many(queue => %L, tasks => ''[]'')'),
  ('rdq.claim(queues => array[%L], runner => ''r'')'),
  ('rdq.next_due_at(queues => array[%L])'),
  ('rdq.tick(queues => array[%L])'),
  ('rdq.redrive_where(queue => %L)'),
  ('rdq.purge_where(queue => %L)')
) s (statement)
cross join pg_temp.error_of(format('select ' || s.statement, 'paiments')) e;

select is(r.code, 'RD001', r.statement) from refused r;
select ok(r.message like '%paiments%', 'the message names it') from refused r;
select ok(r.hint like '%rdq.create_queue%', 'the hint says how to make one') from refused r;

select * from finish();
rollback;
