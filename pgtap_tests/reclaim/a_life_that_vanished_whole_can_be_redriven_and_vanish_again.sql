begin;
select plan(3);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"vanish_limit": 2}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.vanish_and_redrive() returns text
language plpgsql
as $$
declare
  ended text;
begin
  perform pg_temp.vanish_one('q');
  perform pg_temp.pass('1 day');
  ended := pg_temp.vanish_one('q');
  perform r.status from rdq.dead d cross join lateral rdq.redrive(d.task_id) r;
  return ended;
end
$$;

select is(string_agg(pg_temp.vanish_and_redrive(), ' '), 'DEAD DEAD DEAD DEAD', 'four lives end so')
from generate_series(1, 4);
select is(
  string_agg(attempt_no || ':' || life, ' ' order by attempt_no), '1:0 2:0 3:1 4:1 5:2 6:2 7:3 8:3',
  'each of two attempts, numbered on'
)
from rdq.history(:'task');
select is(row(status, redrive_count, attempt_count)::text, '(PENDING,4,0)', 'and a fifth begins')
from rdq.tasks;

select * from finish();
rollback;
