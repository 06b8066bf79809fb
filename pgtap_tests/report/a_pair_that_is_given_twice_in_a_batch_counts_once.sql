begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset

create temp table answers as
select row_number() over () as place, r.status, r.stale
from rdq.report(
  array_fill(:'task_id'::uuid, array[3]), array_fill(:'claim_token'::uuid, array[3]),
  array['{"class": "TRANSIENT"}', null, '{"class": "PERMANENT"}']::jsonb[]
) r;

select is(row(status, stale)::text, '(PENDING,f)', 'the first report of it counts')
from answers
where place = 1;
select is(row(status, stale)::text, '(PENDING,t)', 'the second is stale, and told what the task is now')
from answers
where place = 2;
select is(row(status, stale)::text, '(PENDING,t)', 'the third too') from answers where place = 3;
select is(pg_temp.history_of(:'task'), '1 TRANSIENT', 'one attempt is recorded');

select * from finish();
rollback;
