begin;
\ir ../helpers/common.psql
select plan(6);

select throws_matching(
  $$ select rdq.create_queue(queue => 'q', settings => '{"max_attempt": 3}') $$, 'max_attempt', 'the message names it');
select is(e.code, 'RD002', 'it has the SQLSTATE of a wrong argument')
from pg_temp.error_of($$ select rdq.create_queue(queue => 'q', settings => '{"max_attempt": 3}') $$) e;
select is(
  (select count(*)
   from unnest('{max_attempts,ambiguous_attempts,vanish_limit,max_releases,backoff_base,backoff_factor,backoff_cap,
     ladder,jitter,lease,handler_timeout,give_up_after,error_rules,keep_succeeded,keep_dead,max_payload_bytes,
     notify}'::text[]) k (key)
   where position(k.key in pg_temp.hint_of(
     $$ select rdq.create_queue(queue => 'q', settings => '{"max_attempt": 3}') $$)) > 0),
  17::bigint,
  'the hint lists all that exist');
select is_empty($$ select from rdq.queues where queue = 'q' $$, 'no queue was made');

select throws_ok(
  $$ select rdq.create_queue(queue => 'q', settings => '{"queue": "other"}') $$, 'RD002', null,
  'a queue is not renamed');
select throws_ok(
  $$ select rdq.create_queue(queue => 'q', settings => '{"paused_at": null}') $$, 'RD002', null,
  'an unknown key is refused with a null too');

select * from finish();
rollback;
