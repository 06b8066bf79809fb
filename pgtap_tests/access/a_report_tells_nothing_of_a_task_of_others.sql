begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(10);

select rdq.create_queue(q.name) from unnest('{ours,theirs}'::text[]) q (name);
select pg_temp.create_role('worker', '{ours}');
select rdq.submit('theirs', 'h', 'x') as theirs \gset
select rdq.submit('ours', 'h', 'x') as ours \gset

select is(pg_temp.as_role('rdq_test_worker', format(s.statement, :'theirs')), s.answer, s.statement)
from (values
  ('select status from rdq.fail(%L, gen_random_uuid(), ''E'')', ''),
  ('select stale from rdq.fail(%L, gen_random_uuid(), ''E'')', 'true'),
  ('select status from rdq.report(array[%L]::uuid[], array[gen_random_uuid()], array[null]::jsonb[])', ''),
  ('select status from rdq.report(array[%L]::uuid[], array[gen_random_uuid()], array[''{}'']::jsonb[])', '')
) s (statement, answer);
select is(
  pg_temp.as_role('rdq_test_worker', format('select status from rdq.fail(%L, gen_random_uuid(), ''E'')', :'ours')),
  'PENDING', 'of its own queue it is told the state');
select is(
  pg_temp.as_role('rdq_test_worker', format('select status from rdq.report(array[%L]::uuid[], array[gen_random_uuid()], array[null]::jsonb[])', :'ours')),
  'PENDING', 'by a batch, too');

-- Whether another name is that of a queue is not told either.
select is(
  pg_temp.as_role('rdq_test_worker', format(s.statement, 'theirs')), pg_temp.as_role('rdq_test_worker', format(s.statement, 'none')),
  s.statement)
from (values
  ('select count(*) from rdq.claim(array[%L], ''r'')'),
  ('select rdq.next_due_at(array[%L])'),
  ('select count(*) from rdq.policies(array[%L])'),
  ('select count(*) from rdq.tick(10, array[%L])')
) s (statement);

select * from finish();
rollback;
