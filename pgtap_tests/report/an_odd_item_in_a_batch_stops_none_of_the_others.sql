-- Ten reports in one call, each as odd as a worker can make it: all are recorded.
begin;
select plan(13);
\ir ../helpers/common.psql

select rdq.create_queue('q', '{"error_rules": [{"match": "*", "class": "TRANSIENT"}]}');
create temp table odd as
select place, failure::jsonb
from (
  values
    (1, '{}'),
    (2, '{"type": 404, "message": ["a", 1], "stack": {"line": 1}, "detail": "text"}'),
    (3, '{"type": null, "message": null, "stack": null, "detail": null, "class": null}'),
    (4, '{"retry_after": "garbage", "type": "Busy"}'),
    (5, '{"type": "Down", "message": "\ufffd\u0001\u001b[31m\ud83d\ude00\u202e"}'),
    (6, '{"type": "", "message": ""}'),
    (7, '{"type": "Down", "unknown": {"key": [1, 2, 3]}}'),
    (8, '{"detail": {"deep": [[[[[[[[[[[[[[[[{}]]]]]]]]]]]]]]]]}}'),
    (9, null)
) as v (place, failure)
union all
select 10, jsonb_build_object('type', repeat('t', 300000), 'message', repeat('é', 300000), 'stack', repeat('s', 300000),
  'detail', to_jsonb(repeat('d', 300000)));

select rdq.submit('q', 'h', 'x') from odd;
create temp table held as
select c.task_id, c.claim_token, row_number() over () as place from rdq.claim('{q}', 'tester', 100) c;

create temp table answers as
select r.*
from (
  select
    array_agg(h.task_id order by h.place) as ids, array_agg(h.claim_token order by h.place) as tokens,
    array_agg(o.failure order by h.place) as failures
  from held h
  join odd o using (place)
) a
cross join lateral rdq.report(a.ids, a.tokens, a.failures) r;

select is(
  row(r.status, r.stale)::text, case when o.failure is null then '(SUCCEEDED,f)' else '(PENDING,f)' end,
  left(coalesce(o.failure::text, 'a success'), 60)
)
from odd o
join held using (place)
join answers r using (task_id)
order by place;

select is(count(*), 10::bigint, 'ten attempts are recorded') from rdq.attempt;
select is(count(*), 0::bigint, 'no lease is left') from rdq.lease;
select pg_temp.rows_are(
  $$ select a.error_type, a.message, a.stack, a.detail from rdq.attempt a join held using (task_id) where place = 2 $$,
  $$ values ('404', '["a", 1]', '{"line": 1}', '"text"'::jsonb) $$,
  'what is not text is kept as the text of it'
);

select * from finish();
rollback;
