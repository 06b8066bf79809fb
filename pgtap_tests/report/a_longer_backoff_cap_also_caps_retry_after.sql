begin;
select plan(2);
\ir ../helpers/common.psql

select rdq.create_queue('q', '{"backoff_cap": "7 days", "jitter": 0}');

create function pg_temp.wait_after(retry_after interval) returns interval
language plpgsql
as $$
declare
  held record;
begin
  perform rdq.submit('q', 'h', 'x');
  select * into held from pg_temp.claim_one('q');
  return (
    select f.next_attempt_at - clock_timestamp()
    from rdq.fail(held.task_id, held.claim_token, 'Busy', retry_after => wait_after.retry_after) f
  );
end
$$;

select ok(wait between interval '119 hours' and interval '120 hours', 'five days are waited')
from pg_temp.wait_after('5 days') wait;
select ok(wait between interval '167 hours' and interval '168 hours', 'thirty are seven')
from pg_temp.wait_after('30 days') wait;

select * from finish();
rollback;
