begin;
\ir ../helpers/common.psql
\ir ../helpers/attempts.psql
select plan(13);

select rdq.create_queue('q', '{"max_attempts": 2}');
select rdq.submit('q', 'h', 'live', dedupe_key => 'held') as live \gset
select rdq.cancel(:'live');
select rdq.submit('q', 'h', 'twin', dedupe_key => 'held') as twin \gset
select pg_temp.write_dead('q', 5);

create function pg_temp.counts(id text) returns text
language sql
begin atomic
  select format('%s matched, %s sent: %s succeeded, %s died, %s cancelled, %s undecided; skipped %s %s',
    s.matched, s.sent, s.succeeded, s.died, s.cancelled, s.undecided, s.skipped, s.skipped_why)
  from rdq.redrive_status(id::uuid) s;
end;

select * from rdq.redrive_where(queue => 'q') \gset
select is(
  pg_temp.counts(:'redrive_id'),
  '6 matched, 5 sent: 0 succeeded, 0 died, 0 cancelled, 5 undecided; skipped 1 {"no_span": 0, "key_held": 1, "no_longer_dead": 0}',
  'one could not be sent, and it says why');
select is(
  array[a.affected::text, a.after ->> 'task_ids'], array['1', format('["%s"]', :'live')], 'the audit says which')
from rdq.audit_log a where a.action = 'skip_redrive';
select is(pg_temp.status_of(:'live'), 'DEAD', 'it stays dead');
delete from rdq.due where task_id = :'twin';

select rdq.complete(task_id, claim_token) from pg_temp.claim_one('q');
select is(pg_temp.fail_one('q'), 'PENDING', 'one is retried');
select is(pg_temp.fail_one('q', 'PERMANENT'), 'DEAD', 'one dies again');
select rdq.cancel(task_id) from rdq.due order by due_at limit 1;
select is(
  pg_temp.counts(:'redrive_id'),
  '6 matched, 5 sent: 1 succeeded, 1 died, 1 cancelled, 2 undecided; skipped 1 {"no_span": 0, "key_held": 1, "no_longer_dead": 0}',
  'a cancelled one has not died');
select rdq.tick();
select is(
  pg_temp.counts(:'redrive_id'),
  '6 matched, 5 sent: 1 succeeded, 1 died, 1 cancelled, 2 undecided; skipped 1 {"no_span": 0, "key_held": 1, "no_longer_dead": 0}',
  'counted or not, the numbers are the same');
select is(count(*), 2::bigint, 'a row is kept for what is undecided only') from rdq.redriven;

-- What is redriven once more is not this redrive's any longer.
select rdq.redrive(d.task_id) from rdq.dead d where d.life = 1 and d.reason <> 'CANCELLED';
update rdq.due set due_at = clock_timestamp();
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{q}', 'tester', 9) c;
select is(
  pg_temp.counts(:'redrive_id'),
  '6 matched, 5 sent: 3 succeeded, 1 died, 1 cancelled, 0 undecided; skipped 1 {"no_span": 0, "key_held": 1, "no_longer_dead": 0}',
  'a life that it did not begin is not counted');
select rdq.tick();
select is(count(*), 0::bigint, 'when all has ended nothing is kept') from rdq.redriven;
select isnt(r.settled_at, null, 'and no tick looks at it again') from rdq.redrive_run r;

select pg_temp.write_dead('q', 3);
select * from rdq.redrive_where(queue => 'q', handler => 'h', dead_reason => 'PERMANENT', per_second => 0.01) \gset
select is(:'sent'::text, '1', 'of three one is sent at a slow pace');
select rdq.purge(d.task_id) from rdq.dead d where d.reason = 'PERMANENT' order by d.dead_at limit 1;
select rdq.redrive(d.task_id) from rdq.dead d where d.reason = 'PERMANENT' order by d.dead_at limit 1;
update rdq.redrive_run set next_due_at = clock_timestamp();
select rdq.tick();
select is(
  pg_temp.counts(:'redrive_id'),
  '3 matched, 1 sent: 0 succeeded, 0 died, 0 cancelled, 1 undecided; skipped 2 {"no_span": 0, "key_held": 0, "no_longer_dead": 2}',
  'what others purged or redrove is skipped, and counted as that');

select * from finish();
rollback;
