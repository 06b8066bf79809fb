begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(12);

select rdq.create_queue('q');
select rdq.create_queue('other');
select rdq.submit(q.name, h.name, 'x', error => jsonb_build_object('class', 'PERMANENT', 'type', h.error_type))
from (values ('q'), ('other')) q (name)
cross join (values ('a', 'TimeoutException'), ('a', 'ParseError'), ('b', 'TimeoutException')) h (name, error_type);
select rdq.submit('q', 'a', 'live', run_at => '2999-01-01') as live \gset

set local rdq.actor = 'ada';
select clock_timestamp() as before \gset
select * from rdq.redrive_where(queue => 'q', error_type => 'Timeout*', reason => 'the bank is back') \gset
select is(:'state'::text, 'DONE', 'it is done at once');
select is(array[:matched, :sent, :skipped], array[2, 2, 0], 'with its counts');
select set_eq(
  $$ select queue, handler, error_type from rdq.dead_letters $$,
  $$
    values ('q', 'a', 'ParseError'), ('other', 'a', 'TimeoutException'), ('other', 'a', 'ParseError'),
      ('other', 'b', 'TimeoutException')
  $$,
  'what does not match stays dead');
select is(
  array_agg(array[t.attempt_count, t.redrive_count]), '{{0,1},{0,1}}', 'the others have a fresh budget')
from rdq.tasks t where t.redrive_count > 0;
select ok(bool_and(t.next_attempt_at between :'before' and clock_timestamp()), 'and are due')
from rdq.tasks t where t.redrive_count > 0;
select is(count(*), 2::bigint, 'they can be claimed') from rdq.claim(array['q'], 'tester', max_tasks => 9);
select is(t.next_attempt_at, '2999-01-01', 'a task that was not dead is as it was')
from rdq.tasks t
where t.task_id = :'live';

select pg_temp.rows_are(
  format($$
    select state, filter, matched, sent, undecided, skipped, per_second, reason, actor, finished_at >= began_at
    from rdq.redrive_status(%L)
  $$, :'redrive_id'),
  $$
    values ('DONE', '{"queue": "q", "error_type": "Timeout*"}'::jsonb, 2::bigint, 2::bigint, 2::bigint, 0::bigint, null::float8,
      'the bank is back', 'ada', true)
  $$,
  'its status says what, how many, why and who');
select pg_temp.rows_are(
  $$ select actor, action, queue, redrive_id, filter, affected, reason from rdq.audit_log where action = 'redrive_where' $$,
  format($$
    values ('ada', 'redrive_where', 'q', %L::uuid, '{"queue": "q", "error_type": "Timeout*"}'::jsonb, 2::bigint,
      'the bank is back')
  $$, :'redrive_id'),
  'so does the audit');

select is(array[r.matched, r.sent], '{4,4}', 'a time alone is a filter') from rdq.redrive_where(since => '-infinity') r;
select is(array[r.matched, r.sent], '{0,0}', 'of nothing nothing') from rdq.redrive_where(queue => 'other') r;
select is(t.redriven, 0::bigint, 'nothing is left for a tick') from rdq.tick() t;

select * from finish();
rollback;
