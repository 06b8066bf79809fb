begin;
select plan(3);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

select rdq.create_queue('q', '{"backoff_base": "10 minutes", "jitter": 0}');
select rdq.submit('q', 'h' || n, 'x', max_attempts => case n when 5 then 1 end,
  give_up_at => case n when 6 then clock_timestamp() + interval '5 minutes' end)
from generate_series(1, 7) n;
create temp table held as
select c.task_id, c.claim_token, row_number() over (order by c.handler) as place
from rdq.claim('{q}', 'tester', 7) c;
select rdq.complete(task_id, claim_token) from held where place = 7;

create temp table answers as
select row_number() over () as place, r.*
from (
  select
    array_agg(h.task_id order by h.place desc) as ids,
    array_agg(h.claim_token order by h.place desc) as tokens
  from held h
) h
cross join lateral rdq.report(h.ids, h.tokens, array[
  '{"class": "TRANSIENT"}',
  '{"class": "TRANSIENT"}',
  '{"class": "TRANSIENT"}',
  '{"class": "PERMANENT"}',
  null,
  '{"class": "TRANSIENT"}',
  null
]::jsonb[]) r;

select pg_temp.rows_are(
  $$ select h.place, a.status, a.dead_reason, a.stale from answers a join held h using (task_id) order by a.place $$,
  $$
    values
      (7::bigint, 'SUCCEEDED', null, true),
      (6, 'DEAD', 'DEADLINE', false),
      (5, 'DEAD', 'EXHAUSTED', false),
      (4, 'DEAD', 'PERMANENT', false),
      (3, 'SUCCEEDED', null, false),
      (2, 'PENDING', null, false),
      (1, 'SUCCEEDED', null, false)
  $$,
  'each answer stands where its task was given'
);
select pg_temp.rows_are(
  $$ select t.status, t.dead_reason, t.next_attempt_at from answers a join rdq.tasks t using (task_id) order by a.place $$,
  $$ select status, dead_reason, next_attempt_at from answers order by place $$,
  'and is what rdq.tasks says'
);
select is(count(*), 7::bigint, 'with one attempt each') from rdq.attempt;

select * from finish();
rollback;
