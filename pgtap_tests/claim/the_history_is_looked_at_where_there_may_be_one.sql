begin;
\ir ../helpers/common.psql
select plan(8);

create function pg_temp.looks() returns bigint
language sql
return pg_stat_get_xact_numscans('rdq.attempt_pkey'::regclass);

select rdq.create_queue('q', '{"backoff_base": "0 seconds", "jitter": 0}');

-- Not of a task that is new.
select rdq.submit('q', 'h', 'new');
select count(*) from rdq.submit_many('q', '[{"handler": "h", "payload": "new"}, {"handler": "h", "payload": "new"}]'::jsonb);
select pg_temp.looks() as looks \gset
create temporary table claims as select * from rdq.claim(array['q'], 'tester', 3);
select is(pg_temp.looks() - :looks, 0::bigint, 'no look for three that are new');
select is(array_agg(c.attempt_no), '{1,1,1}', 'it is their first attempt') from claims c;
select is(array_agg(rdq.complete(c.task_id, c.claim_token)), '{t,t,t}', 'they succeed') from claims c;
select pg_temp.looks() as looks \gset

-- Where an attempt was made, whatever became of it.
select rdq.submit('q', 'h', 'released') as task_id \gset
select rdq.release(array[c.task_id], array[c.claim_token]) from rdq.claim(array['q'], 'tester') c;
select is(c.attempt_no, 2, 'a second attempt is the second') from rdq.claim(array['q'], 'tester') c;
select cmp_ok(pg_temp.looks(), '>', :looks::bigint, 'which a look shows');
select is(
  rdq.complete(l.task_id, l.claim_token), true, 'and is recorded as such') from rdq.lease l;
select is(array_agg(a.outcome order by a.attempt_no), '{RELEASED,SUCCEEDED}', 'beside the first')
from rdq.attempt a
where a.task_id = :'task_id';

-- An id of the caller's may have a history that somebody left when he removed the task by hand.
select rdq.submit('q', 'h', 'given', task_id => :'task_id'::uuid);
delete from rdq.task where id = :'task_id';
select rdq.submit('q', 'h', 'given', task_id => :'task_id'::uuid);
select is(c.attempt_no, 3, 'one with a given id numbers on from what is there') from rdq.claim(array['q'], 'tester') c;

select * from finish();
rollback;
