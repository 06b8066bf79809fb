-- Somebody deleted rows by hand, or restored half a backup: the queue goes on.
begin;
select plan(5);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') as lost \gset
select rdq.submit('q', 'h', 'x') as fine \gset
delete from rdq.task where id = :'lost';

select lives_ok(
  $$ create temp table claimed as select * from rdq.claim('{q}', 'tester', 10) $$, 'a claim is not refused'
);
select is(task_id, :'fine', 'and returns the task that can run') from claimed;

select rdq.submit('q', 'h', 'x') as held \gset
create temp table held as select * from rdq.claim('{q}', 'tester', 10);
delete from rdq.task where id = :'held';
select pg_temp.pass('1 day');
select lives_ok('create temp table reclaimed as select * from rdq.reclaim()', 'nor is a reclaim');
select is(pg_temp.status_of(:'fine'), 'PENDING', 'and takes back what else has expired');
select is(
  string_agg(action || ' ' || task_id, ', ' order by id), format('drop_ticket %s, drop_ticket %s', :'lost', :'held'),
  'what was dropped is audited'
)
from rdq.audit
where task_id is not null;

select * from finish();
rollback;
