begin;
select plan(7);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 4, "vanish_limit": 10}');
select rdq.submit('q', 'h', 'x', error => '{"type": "Down", "class": "TRANSIENT"}') as task \gset

create function pg_temp.end_one(ending text) returns void
language plpgsql
as $$
declare
  held record;
begin
  perform pg_temp.pass('2 days');
  case ending
    when 'vanish' then perform pg_temp.vanish_one('q');
    when 'fail' then perform pg_temp.fail_one('q');
    else
      select * into held from pg_temp.claim_one('q');
      case ending
        when 'release' then perform rdq.release(array[held.task_id], array[held.claim_token]);
        when 'cancel' then perform rdq.cancel(held.task_id);
        when 'complete' then perform rdq.complete(held.task_id, held.claim_token);
      end case;
  end case;
end
$$;

select pg_temp.end_one(e) from unnest('{fail, release, vanish, fail, release, fail}'::text[]) e;
select is(row(status, dead_reason)::text, '(DEAD,EXHAUSTED)', 'a first life') from rdq.tasks;
select status from rdq.redrive(:'task');
select pg_temp.end_one(e) from unnest('{vanish, cancel}'::text[]) e;
select is(row(status, dead_reason)::text, '(DEAD,CANCELLED)', 'a second') from rdq.tasks;
select status from rdq.redrive(:'task');
select pg_temp.end_one(e) from unnest('{release, fail, complete}'::text[]) e;
select is(status, 'SUCCEEDED', 'and a third') from rdq.tasks;

select is(
  pg_temp.history_of(:'task'),
  '1 TRANSIENT, 2 TRANSIENT, 3 RELEASED, 4 LEASE_EXPIRED, 5 TRANSIENT, 6 RELEASED, 7 TRANSIENT, '
  '8 LEASE_EXPIRED, 9 RELEASED, 10 RELEASED, 11 TRANSIENT, 12 SUCCEEDED',
  'are one history, every claim of which ended in exactly one row'
);
select is(string_agg(life::text, '' order by attempt_no), '000000011222', 'each row says in which life it was')
from rdq.history(:'task');
select is_empty(
  format('select * from (select *, lag(finished_at) over (order by attempt_no) as previous from rdq.history(%L)) h where finished_at < previous', :'task'),
  'the numbers are in the order of time'
);
select is(
  row(redrive_count, attempt_count)::text, '(2,2)', 'the budget of the last life is derived from its rows alone'
)
from rdq.tasks;

select * from finish();
rollback;
