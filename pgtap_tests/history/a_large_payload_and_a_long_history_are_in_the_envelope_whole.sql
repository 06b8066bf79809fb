begin;
select plan(6);

select rdq.create_queue('q');
create temporary table noise as
select string_agg(md5(n::text), '') as noise from generate_series(1, 32768) n;
select rdq.submit('q', 'h', decode(n.noise, 'hex') || decode(n.noise, 'hex'), error => '{"class": "TRANSIENT"}') as task
from noise n \gset

-- 200 attempts with a stack of 64 KiB each, as if all were kept.
insert into rdq.attempt (
  task_id, attempt_no, life, queue, outcome, error_class, error_type, message, stack, runner, started_at, finished_at
)
select :'task', n, 0, 'q', 'FAILED', 'TRANSIENT', 'E', 'message', left(s.noise, 65536), 'worker', clock_timestamp(), clock_timestamp()
from generate_series(2, 200) n
cross join noise s;

create temporary table envelope as select rdq.envelope(:'task') as e;
select is(
  sha256(decode(e ->> 'payload', 'base64')), sha256(decode(n.noise, 'hex') || decode(n.noise, 'hex')),
  'a payload of 1 MiB, byte for byte'
)
from envelope, noise n;
select is(octet_length(decode(e ->> 'payload', 'base64')), 1048576, 'which is the largest by default') from envelope;
select is(jsonb_array_length(e -> 'attempts'), 200, 'every attempt') from envelope;
select is(count(*), 199::bigint, 'with its stack')
from envelope, jsonb_array_elements(e -> 'attempts') a
where length(a ->> 'stack') = 65536;

insert into rdq.attempt (
  task_id, attempt_no, life, queue, outcome, error_class, error_type, runner, started_at, finished_at
)
select :'task', n, n / 100, 'q', 'FAILED', 'TRANSIENT', 'E', 'worker', clock_timestamp(), clock_timestamp()
from generate_series(201, 5000) n;
select is(
  array_agg(h.attempt_no), array(select generate_series(1, 5000)), 'five thousand attempts come in their order'
)
from rdq.history(:'task') h;
select is(jsonb_array_length(rdq.envelope(:'task') -> 'attempts'), 5000, 'and all are in the envelope');

select * from finish();
rollback;
