begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q');
select rdq.submit_many('q', '[{
  "handler": "charge", "payload": "x", "headers": {"traceparent": "00-1"}, "run_at": "2998-01-01T00:00:00Z",
  "give_up_at": "2999-01-01T00:00:00Z", "max_attempts": 7, "dedupe_key": "order 42", "handler_version": "2026.1",
  "task_id": "01890000-0000-7000-8000-000000000001", "content_type": "text/csv", "error": null
}]') as id \gset

select is(:'id'::uuid, '01890000-0000-7000-8000-000000000001', 'the id is the caller''s');
select pg_temp.rows_are(
  $$
    select t.handler, t.handler_version, t.payload, t.content_type, t.headers, t.max_attempts, t.give_up_at,
      t.dedupe_key, d.due_at
    from rdq.task t
    join rdq.due d on d.task_id = t.id
  $$,
  $$
    values ('charge', '2026.1', 'x'::bytea, 'text/csv', '{"traceparent": "00-1"}'::jsonb, 7,
      '2999-01-01 00:00Z'::timestamptz, 'order 42', '2998-01-01 00:00Z'::timestamptz)
  $$,
  'all of it is kept');

select rdq.submit_many('q', '[{
  "handler": "h", "payload": "x", "headers": null, "run_at": null, "give_up_at": null, "max_attempts": null,
  "dedupe_key": null, "handler_version": null, "task_id": null, "content_type": null, "error": null,
  "payload_base64": null
}]') as id \gset
select pg_temp.rows_are(
  format($$ select t.headers, t.max_attempts, t.give_up_at, t.content_type from rdq._task(%L::uuid) t $$, :'id'),
  $$ values ('{}'::jsonb, null::integer, null::timestamptz, 'text/plain; charset=utf-8') $$,
  'null is the same as not given');

select rdq.submit_many('q', '[{"handler": "h", "payload": "x",
  "error": {"type": "T", "message": "m", "class": "TRANSIENT", "at": "2026-01-31T12:00:00Z"}}]') as id \gset
select pg_temp.rows_are(
  format($$ select attempt_no, error_type, message, error_class, finished_at from rdq.history(%L) $$, :'id'),
  $$ values (1, 'T', 'm', 'TRANSIENT', '2026-01-31 12:00Z'::timestamptz) $$,
  'a failure is handed over');

select * from finish();
rollback;
