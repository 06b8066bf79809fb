begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('none');
select rdq.create_queue('q', '{"give_up_after": "2 hours"}');

create function pg_temp.deadline(id uuid) returns timestamptz
language sql
begin atomic
  select t.give_up_at from rdq.tasks t where t.task_id = deadline.id;
end;

select is(pg_temp.deadline(rdq.submit('none', 'h', 'x')), null, 'no setting, no deadline');
select ok(
  pg_temp.deadline(rdq.submit('q', 'h', 'x'))
    between clock_timestamp() + interval '119 minutes' and clock_timestamp() + interval '2 hours',
  'the queue''s span from now on');
select is(
  pg_temp.deadline(rdq.submit('q', 'h', 'x', run_at => '2999-01-01 00:00Z')), '2999-01-01 02:00Z',
  'from the earliest start on, where there is one');
select is(
  pg_temp.deadline(rdq.submit('q', 'h', 'x', give_up_at => '2999-01-01 00:00Z')), '2999-01-01 00:00Z',
  'the caller''s word wins');
select ok(
  pg_temp.deadline((select rdq.submit_many('q', '[{"handler": "h", "payload": "x"}]')))
    between clock_timestamp() + interval '119 minutes' and clock_timestamp() + interval '2 hours',
  'in submit_many too');

select is(
  pg_temp.deadline((
    select rdq.submit_many('q', '[{"handler": "h", "payload": "x", "run_at": "2999-01-01T00:00:00Z"}]')
  )),
  '2999-01-01 02:00Z', 'there too from the earliest start on');

select * from finish();
rollback;
