-- An outage lets 2,000 leases expire at once: the tasks come back spread over a band around the first
-- rung, the second time around the second, and none is dead of one outage.
begin;
select plan(10);
\ir ../helpers/time.psql

select rdq.create_queue('q', '{"backoff_base": "100 s", "jitter": 0.2, "max_attempts": 3}');
select count(*)
from rdq.submit_many('q', to_jsonb(array_fill('{"handler": "h", "payload": "x"}'::jsonb, array[2000])));

select count(*) from rdq.claim('{q}', 'tester', 2000);
select pg_temp.pass('1 hour');
select is(count(*), 2000::bigint, 'all 2,000 are taken back, and none is dead')
from rdq.reclaim(10000)
where status = 'PENDING';
select cmp_ok(count(distinct due_at), '>', 1000::bigint, 'with due times of their own') from rdq.due;
select ok(
  min(due_at) > clock_timestamp() + interval '70 s' and max(due_at) <= clock_timestamp() + interval '120 s',
  'within a fifth around 100 seconds'
)
from rdq.due;
-- 2,000 over 40 seconds are 50 a second.
select cmp_ok(max(size), '<', 120::bigint, 'no second has more than its share')
from (select count(*) as size from rdq.due group by date_trunc('second', due_at)) s;
select is(count(*), 0::bigint, 'none is due now') from rdq.claim('{q}', 'tester', 2000);
select is(count(*), 2000::bigint, 'one attempt has vanished of each')
from rdq.attempt
where outcome = 'LEASE_EXPIRED';

select pg_temp.pass('1 hour');
select count(*) from rdq.claim('{q}', 'tester', 2000);
select pg_temp.pass('1 hour');
select is(count(*), 2000::bigint, 'the second outage kills none either')
from rdq.reclaim(10000)
where status = 'PENDING';
select ok(
  min(due_at) > clock_timestamp() + interval '150 s' and max(due_at) <= clock_timestamp() + interval '240 s',
  'and they wait longer: around 200 seconds'
)
from rdq.due;
select cmp_ok(count(distinct due_at), '>', 1000::bigint, 'spread again') from rdq.due;
select is(count(*), 0::bigint, 'no dead letter') from rdq.dead;

select * from finish();
rollback;
