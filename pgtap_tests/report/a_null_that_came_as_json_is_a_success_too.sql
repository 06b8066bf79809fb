-- Drivers send a missing value of a jsonb[] as JSON null as often as SQL null.
begin;
select plan(2);
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as task \gset
select * from pg_temp.claim_one('q') \gset

select is(r.status, 'SUCCEEDED', 'it is answered as a success')
from rdq.report(array[:'task_id']::uuid[], array[:'claim_token']::uuid[], array['null']::jsonb[]) r;
select is(pg_temp.history_of(:'task'), '1 SUCCEEDED', 'and recorded as one');

select * from finish();
rollback;
