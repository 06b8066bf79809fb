begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/stats.psql
select plan(5);

select pg_temp.counting_is('1 hour');
select rdq.create_queue(q.name) from unnest('{empty,q}'::text[]) q (name);
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') from generate_series(1, 4);
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '1 second');
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1);
select pg_temp.write_dead('q', 2);
select pg_temp.pass('10 seconds');
select rdq.pause_queue('q');

create function pg_temp.both() returns text
language sql
begin atomic
  select pg_temp.rows_are(
    'select queue, paused, due, scheduled, in_flight, expired, dead, oldest_due_age, oldest_dead_age, now() - now()
     from rdq.queue_stats order by queue',
    'select queue, paused, due, scheduled, in_flight, expired, dead, oldest_due_age, oldest_dead_age,
       statement_timestamp() - counted_at
     from rdq.recent_queue_stats() order by queue',
    'as the view');
end;

select pg_temp.both();
select is(pg_temp.told('q'), '1 4 2 1 2 paused', 'no recount is due');
select rdq.refresh_queue_stats();
select is_empty('select from rdq.queue_count', 'a recount stores nothing');
select rdq.submit('q', 'h', 'x') from generate_series(1, 2);
select pg_temp.both();
select is(pg_temp.told('q'), '3 4 2 1 2 paused', 'what comes is seen');

select * from finish();
rollback;
