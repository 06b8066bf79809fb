begin;
\ir ../helpers/common.psql
select plan(16);

select rdq.create_queue('q');

-- A time without its offset would be another one in each session.
create function pg_temp.refusal(field text, value text) returns text
language sql
begin atomic
  select e.code || ' ' || e.message
  from pg_temp.error_of(format('select rdq.submit_many(%L, %L::jsonb)', 'q', jsonb_build_array(
    jsonb_build_object('handler', 'h', 'payload', 'x') || jsonb_build_object(field, value)
  ))) e;
end;

select is(pg_temp.refusal(f.field, '2999-01-31T12:00:00'),
  format('RD002 tasks[0]: %s is not a time with its offset from UTC: 2999-01-31T12:00:00', f.field), f.field || ' without an offset')
from unnest('{run_at,give_up_at}'::text[]) f (field);
select is(left(pg_temp.refusal('run_at', w.value), 61), 'RD002 tasks[0]: run_at is not a time with its offset from UTC',
  format('%L is none', w.value))
from unnest('{tomorrow,now,infinity,2999-01-31,2999-02-31T12:00:00Z,2999-01-31 12:00:00 Europe/Zurich}'::text[]) w (value);
select is(pg_temp.refusal('run_at', w.value), null, format('%L is one', w.value))
from unnest('{2999-01-31T12:00:00Z,2999-01-31 12:00:00.5+01,2999-01-31t12:00z,2999-01-31T12:00:00-03:30}'::text[]) w (value);

set local timezone = 'Asia/Kathmandu';
select is(rdq.submit('q', 'h', 'x', error => '{"at": "2020-01-31T12:00:00+01:00"}') is null, false, 'a failure with its offset');
select is(a.finished_at, '2020-01-31 11:00:00Z'::timestamptz, 'is of that moment') from rdq.attempt a;
select throws_ok($$ select rdq.submit('q', 'h', 'x', error => '{"at": "2020-01-31T12:00:00"}') $$, 'RD002',
  'error.at is not a time with its offset from UTC: 2020-01-31T12:00:00', 'without one it is refused');

-- A payload that came as JSON is kept byte for byte.
select rdq.submit_many('q', '[{"handler": "bytes", "payload": {"b": 1.0e2,  "a": 1, "a": 2}}]'::json);
select is(convert_from(t.payload, 'UTF8'), '{"b": 1.0e2,  "a": 1, "a": 2}', 'a payload in json keeps its bytes')
from rdq.task t
where t.handler = 'bytes';

select * from finish();
rollback;
