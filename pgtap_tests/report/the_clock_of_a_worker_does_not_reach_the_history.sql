-- The clock of the database is the only clock: a report that brings a time of its own is recorded with ours.
begin;
select plan(3);
\ir ../helpers/common.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
create temp table held as select * from rdq.claim('{q}', 'tester', 2);

create temp table answers as
select r.*
from (select array_agg(task_id) as ids, array_agg(claim_token) as tokens from held) h
cross join lateral rdq.report(h.ids, h.tokens, array['{"at": "3000-01-01T00:00:00Z"}', '{"at": "no time"}']::jsonb[]) r;

select is(count(*), 2::bigint, 'both are recorded') from answers where not stale;
select ok(finished_at between started_at and clock_timestamp(), 'with the time of the report')
from rdq.attempt;

select * from finish();
rollback;
