begin;
\ir ../helpers/common.psql
select plan(12);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as id \gset
select count(*) as before from rdq.audit \gset

select matches(e.code, '^RD', s.statement)
from (values
  ('rdq.create_queue(''Q'')'), ('rdq.alter_queue(''q'', ''{"max_attempts": 0}'')'), ('rdq.drop_queue(''q'')'),
  ('rdq.pause_queue(''none'')'), ('rdq.resume_queue(''none'')'), ('rdq.redrive(%L)'), ('rdq.purge(%L)'),
  ('rdq.redrive_where()'), ('rdq.purge_where()'), ('rdq.grant_access(''no_such_role'', ''viewer'')'),
  ('rdq.pause_redrive(%L)')
) s (statement)
cross join pg_temp.error_of(format('select ' || s.statement, :'id')) e;
select is(count(*), :'before'::bigint, 'no row was added') from rdq.audit;

select * from finish();
rollback;
