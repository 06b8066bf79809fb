begin;
select plan(5);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 4);
create temp table held as
select c.task_id, c.claim_token, row_number() over () as place from rdq.claim('{q}', 'tester', 4) c;

-- 1 and 4 are held; 2 has ended; 3 is somebody else's. 1 is given twice.
select rdq.complete(task_id, claim_token) from held where place = 2;
update held set claim_token = gen_random_uuid() where place = 3;
create temp table answers as
select rdq.release(array_agg(task_id order by place), array_agg(claim_token order by place), repeat('é', 4096)) as task_id
from (select * from held union all select * from held where place = 1) h;

select results_eq(
  $$ select h.place from answers a join held h using (task_id) order by h.place $$, $$ values (1::bigint), (4) $$,
  'each once'
);
select is(pg_temp.history_of(task_id), '1 RELEASED', 'a release that counts is one attempt')
from held
where place = 1;
select is(pg_temp.history_of(task_id), '1 SUCCEEDED', 'an attempt that has ended stays as it ended')
from held
where place = 2;
select is(pg_temp.history_of(task_id), '', 'a claim of somebody else is not touched')
from held
where place = 3;
select is(octet_length(message), 4095, 'a long reason is cut like any message')
from held, rdq.history(task_id)
where place = 4;

select * from finish();
rollback;
