begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/stats.psql
select plan(17);

select pg_temp.counting_is('0');
select rdq.create_queue(q.name) from unnest('{gone,q}'::text[]) q (name);
select rdq.submit('q', 'h', 'x') from generate_series(1, 3);
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01') from generate_series(1, 4);
select pg_temp.write_dead('q', 2);
select pg_temp.pass('10 seconds');

select is(pg_temp.told('q'), '3 4 0 0 2 recount', 'nothing is stored: it counts, and a recount is due');
select rdq.refresh_queue_stats();
select results_eq('select count(*) from rdq.queue_count', 'values (1::bigint)', 'one count is stored');
-- As if it had taken so long.
update rdq.queue_count set took = '2 seconds';
select is(pg_temp.told('q'), '3 4 0 0 2', 'what was counted');

-- Everything changes.
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '1 second');
select count(*) from rdq.claim(array['q'], 'tester', max_tasks => 1, lease => '1 hour');
select rdq.submit('q', 'h', 'x', run_at => '2999-01-01');
select pg_temp.write_dead('q', 2);
select rdq.pause_queue('q');
select rdq.drop_queue('gone');
select rdq.create_queue('new');
select rdq.submit('new', 'h', 'x');
select pg_temp.pass('100 seconds');

select is(pg_temp.told('q'), '3 4 2 1 2 paused', 'counts are of then; pauses and leases, of now');
select results_eq(
  'select queue, due, counted_at = statement_timestamp() from rdq.recent_queue_stats() order by queue',
  $$ values ('new', 1::bigint, true), ('q', 3::bigint, false) $$,
  'a queue that is new is counted, one that is gone is not there');
select ok(
  s.oldest_due_age = v.oldest_due_age and s.oldest_due_age >= '110 seconds',
  'how long the oldest due task has waited is of now: ' || s.oldest_due_age)
from rdq.recent_queue_stats() s join rdq.queue_stats v using (queue)
where s.queue = 'q';
select ok(
  s.oldest_dead_age - interval '110 seconds' between '0' and '5 seconds', 'the oldest dead letter of then is older now: ' || s.oldest_dead_age)
from rdq.recent_queue_stats() s where s.queue = 'q';
select ok(
  statement_timestamp() - s.counted_at between '100 seconds' and '105 seconds', 'when it was counted: ' || s.counted_at)
from rdq.recent_queue_stats() s where s.queue = 'q';

-- A hundred times what it took.
select c.counted_at as before from rdq.queue_count c \gset
select rdq.refresh_queue_stats();
select is(c.counted_at, :'before', 'before that, nobody counts') from rdq.queue_count c;
select pg_temp.pass('101 seconds');
select is(pg_temp.told('q'), '3 4 2 1 2 paused recount', 'after that a recount is due');
select rdq.refresh_queue_stats();
update rdq.queue_count set took = '2 seconds';
select is(pg_temp.told('q'), '1 5 2 1 4 paused', 'and is done');
select results_eq('select count(*) from rdq.queue_count', 'values (1::bigint)', 'in place of the last');

-- Two hundred times, and 90 seconds at least.
select rdq.submit('q', 'h', 'x') from generate_series(1, 5);
select pg_temp.pass('390 seconds');
select is(pg_temp.told('q'), '1 5 2 1 4 paused recount', 'nobody has recounted');
select pg_temp.pass('20 seconds');
select is(pg_temp.told('q'), '6 5 2 1 4 paused recount', 'a stored count is not shown for ever');
update rdq.queue_count set took = '1 millisecond', counted_at = statement_timestamp() - interval '80 seconds';
select is(pg_temp.told('q'), '1 5 2 1 4 paused recount', 'who looks once a minute does not count');

-- A clock that was set back.
update rdq.queue_count set counted_at = statement_timestamp() + interval '1 hour';
select is(pg_temp.told('q'), '6 5 2 1 4 paused recount', 'what comes from the future is not believed');

select pg_temp.counting_is('1 hour');
select rdq.refresh_queue_stats();
select is_empty('select from rdq.queue_count', 'where counting has become quick, nothing stays stored');

select * from finish();
rollback;
