-- Whoever reclaims knows nothing of the handlers: a task of a handler that it has never heard of waits
-- again, and is not dead.
begin;
select plan(2);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q');
select rdq.submit('q', 'of-another-team', 'x') as task \gset
select is(pg_temp.vanish_one('q'), 'PENDING', 'it is taken back');
select is(row(status, dead_reason)::text, '(PENDING,)', 'and waits') from rdq.tasks;

select * from finish();
rollback;
