-- Each dead_reason, reached as it is in life; what the dead letter shows of the last error; and how many
-- attempts there were.
begin;
select plan(9);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"max_attempts": 2, "ambiguous_attempts": 1, "vanish_limit": 1, "max_releases": 0}');

create function pg_temp.die(reason text) returns uuid
language plpgsql
as $$
declare
  task constant uuid := rdq.submit(
    'q', 'h', 'x', give_up_at => case reason when 'DEADLINE' then clock_timestamp() + interval '30 s' end
  );
  held record;
begin
  case reason
    when 'EXHAUSTED' then
      perform pg_temp.fail_one('q');
      perform pg_temp.pass('1 day');
      perform pg_temp.fail_one('q', 'TRANSIENT', 'StillDown');
    when 'PERMANENT' then perform pg_temp.fail_one('q', 'PERMANENT', 'Bad');
    when 'AMBIGUOUS' then perform pg_temp.fail_one('q', 'AMBIGUOUS', 'Reset');
    when 'DEADLINE' then perform pg_temp.fail_one('q');
    when 'VANISHED' then perform pg_temp.vanish_one('q');
    when 'UNROUTABLE' then
      for i in 1 .. 2 loop
        select * into held from pg_temp.claim_one('q');
        perform rdq.release(array[held.task_id], array[held.claim_token], 'no such handler');
      end loop;
    when 'CANCELLED' then
      perform pg_temp.fail_one('q');
      perform pg_temp.pass('1 day');
      perform pg_temp.claim_one('q');
      perform rdq.cancel(task, 'not needed');
  end case;
  return task;
end
$$;

create temp table story as
select place, reason, pg_temp.die(reason) as task_id
from unnest('{EXHAUSTED, PERMANENT, AMBIGUOUS, DEADLINE, VANISHED, UNROUTABLE, CANCELLED}'::text[]) with ordinality
  as r (reason, place);

select is(row(d.dead_reason, d.error_type, d.error_class, d.attempts)::text, v.seen, s.reason)
from story s
join rdq.dead_letters d using (task_id)
join (
  values
    (1, '(EXHAUSTED,StillDown,TRANSIENT,2)'),
    (2, '(PERMANENT,Bad,PERMANENT,1)'),
    (3, '(AMBIGUOUS,Reset,AMBIGUOUS,1)'),
    (4, '(DEADLINE,Down,TRANSIENT,1)'),
    (5, '(VANISHED,LEASE_EXPIRED,,1)'),
    (6, '(UNROUTABLE,RELEASED,,2)'),
    (7, '(CANCELLED,Down,TRANSIENT,2)')
) as v (place, seen) using (place)
order by s.place;
select pg_temp.rows_are(
  'select t.status, t.dead_reason from rdq.tasks t join story s using (task_id) order by s.place',
  $$ select 'DEAD', reason from story order by place $$,
  'rdq.tasks says the same'
);
select is_empty(
  $$ select * from rdq.tasks where status = 'DEAD' and (finished_at is null or next_attempt_at is not null or lease_expires_at is not null) $$,
  'what is dead has an end, and no next attempt'
);

select * from finish();
rollback;
