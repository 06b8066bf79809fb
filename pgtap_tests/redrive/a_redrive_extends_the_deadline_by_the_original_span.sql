begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(11);

select rdq.create_queue('q', '{"give_up_after": "2 hours"}');

-- How long from now the deadline of a task is, in minutes.
create function pg_temp.minutes_left(id uuid) returns integer
language sql
begin atomic
  select round(extract(epoch from t.give_up_at - clock_timestamp()) / 60)::integer
  from rdq.tasks t
  where t.task_id = minutes_left.id;
end;

select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() + interval '30 minutes') as id \gset
select pg_temp.pass('10 days');
select rdq.tick();
select is(t.dead_reason, 'DEADLINE', 'its deadline has passed') from rdq.tasks t where t.task_id = :'id';
select rdq.redrive(:'id');
select is(pg_temp.minutes_left(:'id'), 30, 'the caller''s span from now on');
select is(count(*), 1::bigint, 'so it can run') from rdq.claim(array['q'], 'tester');
select rdq.cancel(:'id');
select pg_temp.pass('10 days');
select rdq.redrive(:'id');
select is(pg_temp.minutes_left(:'id'), 30, 'a second time: the same span, not more');
select rdq.cancel(:'id');

select pg_temp.pass('10 days');
select rdq.redrive(:'id', run_at => clock_timestamp() + interval '1 hour');
select is(pg_temp.minutes_left(:'id'), 90, 'from the first start on, where there is one');
select rdq.cancel(:'id');

select rdq.redrive(:'id', give_up_at => clock_timestamp() + interval '7 minutes');
select is(pg_temp.minutes_left(:'id'), 7, 'an explicit deadline');
select rdq.cancel(:'id');
select rdq.redrive(:'id');
select is(pg_temp.minutes_left(:'id'), 30, 'holds for that life only');
select rdq.cancel(:'id');

select pg_temp.pass('10 days');
select rdq.redrive_where(queue => 'q');
select is(pg_temp.minutes_left(:'id'), 30, 'in bulk');
select rdq.cancel(:'id');

select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select pg_temp.pass('10 days');
select rdq.redrive(:'id');
select is(pg_temp.minutes_left(:'id'), 120, 'the queue''s span, for a caller that gave none');

select rdq.alter_queue('q', '{"give_up_after": null}');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset
select rdq.redrive(:'id');
select is(pg_temp.minutes_left(:'id'), null, 'no deadline stays none');
select rdq.cancel(:'id');
select rdq.redrive(:'id', give_up_at => clock_timestamp() + interval '7 minutes');
select is(pg_temp.minutes_left(:'id'), 7, 'unless one is given');

select * from finish();
rollback;
