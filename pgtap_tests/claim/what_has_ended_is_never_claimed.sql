begin;
select plan(2);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"keep_succeeded": "forever"}');
select rdq.submit('q', 'h', 'x') from generate_series(1, 4);
create temp table held as select *, row_number() over () as place from rdq.claim('{q}', 'tester', 3);
select rdq.complete(task_id, claim_token) from held where place = 1;
select f.status
from held
cross join lateral rdq.fail(task_id, claim_token, 'Bad', error_class => 'PERMANENT') f
where place = 2;
select rdq.cancel(task_id) from held where place = 3;
select rdq.cancel(task_id) from rdq.due;
select pg_temp.pass('1 year');

select is_empty($$ select * from rdq.claim('{q}', 'tester', 10) $$, 'neither what succeeded nor what is dead');
select results_eq(
  'select status, count(*) from rdq.tasks group by status order by status',
  $$ values ('DEAD', 3::bigint), ('SUCCEEDED', 1) $$, 'whatever time passes'
);

select * from finish();
rollback;
