begin;
select plan(10);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{
  "backoff_base": "10 s", "jitter": 0, "max_attempts": 3, "ambiguous_attempts": 2, "vanish_limit": 2, "max_releases": 1
}');
select rdq.submit('q', 'h', 'x') as task \gset

create function pg_temp.after_a_failure(error_class text) returns text
language plpgsql
as $$
begin
  perform pg_temp.pass('1 day');
  perform pg_temp.fail_one('q', error_class);
  return (
    select concat_ws(' ', t.status, t.dead_reason, date_trunc('second', t.next_attempt_at - a.finished_at + interval '0.5 s'))
    from rdq.tasks t
    cross join (select max(a.finished_at) as finished_at from rdq.attempt a) a
  );
end
$$;

select is(pg_temp.after_a_failure('AMBIGUOUS'), 'PENDING 00:00:10', 'the first rung of the first life');
select is(pg_temp.after_a_failure('AMBIGUOUS'), 'DEAD AMBIGUOUS', 'two ambiguous failures are enough');
select status from rdq.redrive(:'task');
select is(pg_temp.after_a_failure('AMBIGUOUS'), 'PENDING 00:00:10', 'the first rung of the second life, and one of two ambiguous failures');
select is(pg_temp.after_a_failure('TRANSIENT'), 'PENDING 00:00:20', 'the second rung');
select is(pg_temp.after_a_failure('TRANSIENT'), 'DEAD EXHAUSTED', 'three attempts are all');
select status from rdq.redrive(:'task');
select is(pg_temp.after_a_failure('TRANSIENT'), 'PENDING 00:00:10', 'the third life begins anew too');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'PENDING', 'an attempt vanishes');
select pg_temp.pass('1 day');
select is(pg_temp.vanish_one('q'), 'DEAD', 'and another');
select status from rdq.redrive(:'task');
select is(pg_temp.vanish_one('q'), 'PENDING', 'in the fourth life the vanished in a row are none');
select pg_temp.pass('1 day');
select rdq.release(array[task_id], array[claim_token]) from pg_temp.claim_one('q');
select is(row(status, attempt_count)::text, '(PENDING,1)', 'and a release is given back') from rdq.tasks;

select * from finish();
rollback;
