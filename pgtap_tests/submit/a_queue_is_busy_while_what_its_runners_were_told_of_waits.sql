begin;
select plan(15);

select rdq.create_queue('q');
select rdq.create_queue('other');

-- In the middle of a half second, in a transaction that has just begun.
\set moment '''2030-01-01 12:00:00.250+00'''

create function pg_temp.is_busy_with(age interval, moment timestamptz default '2030-01-01 12:00:00.250+00') returns boolean
language plpgsql
as $$
begin
  delete from rdq.due;
  insert into rdq.due (task_id, queue, due_at, life) values (gen_random_uuid(), 'q', moment - age, 0);
  return (select b.busy from rdq._is_busy('q', moment, moment) b (busy));
end
$$;

select is(rdq._is_busy('q', :moment, :moment), false, 'where nothing waits');
select is(pg_temp.is_busy_with('0 ms'), false, 'a task of this instant may be taken by who does not see ours');
select is(pg_temp.is_busy_with('19.999 ms'), false, 'and one that is almost 20 ms old');
select is(pg_temp.is_busy_with('20 ms'), true, 'after 20 ms it waits because all are busy');
select is(pg_temp.is_busy_with('50 ms'), true, 'until it is 50 ms old');
select is(pg_temp.is_busy_with('50.001 ms'), false, 'after that perhaps because nobody can take it');
select is(pg_temp.is_busy_with('1 hour'), false, 'as one may for long');
select is(pg_temp.is_busy_with('-1 hour'), false, 'a task of later does not wait');

select is(pg_temp.is_busy_with('30 ms', '2030-01-01 12:00:00.030+00'), true, 'one that became due as this half second began counts');
select is(pg_temp.is_busy_with('30 ms', '2030-01-01 12:00:00.029999+00'), false, 'one of the half second before does not');
select is(pg_temp.is_busy_with('30 ms', '2030-01-01 12:00:00.529999+00'), false, 'twice a second');

select pg_temp.is_busy_with('30 ms');
select is(rdq._is_busy('other', :moment, :moment), false, 'another queue is not busy');
select is(
  rdq._is_busy('q', :moment, :moment::timestamptz - interval '19.999 ms'), true, 'to a transaction that is almost 20 ms old');
select is(
  rdq._is_busy('q', :moment, :moment::timestamptz - interval '20 ms'), false, 'one of 20 ms may have written what waits');
insert into rdq.due (task_id, queue, due_at, life)
select gen_random_uuid(), 'q', :moment::timestamptz - make_interval(secs => n), 0 from generate_series(1, 1000) n;
select is(rdq._is_busy('q', :moment, :moment), true, 'whatever else waits');

select * from finish();
rollback;
