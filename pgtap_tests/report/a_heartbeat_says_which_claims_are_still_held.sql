begin;
select plan(4);
\ir ../helpers/common.psql
\ir ../helpers/time.psql

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x') from generate_series(1, 5);
create temp table held as
select c.*, row_number() over () as place from rdq.claim('{q}', 'tester', 5) c;

-- 1 and 5 are still held; 2 has ended, 3 was taken back, 4 was cancelled.
select rdq.complete(task_id, claim_token) from held where place = 2;
select rdq.heartbeat(array_agg(task_id), array_agg(claim_token), '3 days') from held where place <> 3;
select pg_temp.pass('2 days');
select rdq.reclaim();
select rdq.cancel(task_id) from held where place = 4;

create function pg_temp.beat() returns text
language sql
begin atomic
  select string_agg(h.place::text, ',' order by h.place)
  from (select array_agg(task_id order by place) as ids, array_agg(claim_token order by place) as tokens from held) a
  cross join lateral rdq.heartbeat(a.ids, a.tokens) b
  join held h on h.task_id = b;
end;

select is(pg_temp.beat(), '1,5', 'the held ones are answered');
select is(pg_temp.beat(), '1,5', 'every time');
select is_empty($$ select rdq.heartbeat('{}', '{}') $$, 'nothing to say is nothing to answer');
select is_empty(
  $$
    select rdq.heartbeat(array_agg(h.task_id), array_agg(other.claim_token))
    from held h
    join held other on (h.place, other.place) in ((1, 5), (5, 1))
  $$,
  'a token of another task is not a token'
);

select * from finish();
rollback;
