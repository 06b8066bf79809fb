begin;
\ir ../helpers/common.psql
select plan(4);

select rdq.create_queue('q');
select rdq.submit('q', 'h', '{"amount": "12,00"}', error => '{"class": "PERMANENT"}') as id \gset

set local rdq.actor = 'ada';
select rdq.redrive(:'id', '{"amount": 12.00}', reason => 'comma');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '\x00ff'::bytea, reason => 'bytes');
select rdq.cancel(:'id');
select rdq.redrive(:'id', reason => 'as it is');

create function pg_temp.payload(content jsonb) returns bytea
language sql
begin atomic
  select decode(content ->> 'payload', 'base64');
end;

select results_eq(
  $$
    select actor, reason, pg_temp.payload(before), pg_temp.payload(after)
    from rdq.audit_log
    where action = 'redrive'
    order by id
  $$,
  $$
    values
      ('ada', 'comma', '{"amount": "12,00"}'::bytea, '{"amount": 12.00}'::bytea),
      ('ada', 'bytes', '{"amount": 12.00}', '\x00ff'),
      ('ada', 'as it is', null, null)
  $$,
  'each edit with what was before and after');
select is(count(*), 3::bigint, 'one row a redrive, with its task')
from rdq.audit_log a where a.action = 'redrive' and a.task_id = :'id' and a.queue = 'q' and a.affected = 1;

select rdq.cancel(:'id');
select rdq.redrive(:'id', repeat('x', 1000));
select is(octet_length(pg_temp.payload(a.after)), 1000, 'the whole of a long one')
from rdq.audit_log a order by a.id desc limit 1;
select unalike(a.after::text, '%\n%', 'in one line') from rdq.audit_log a order by a.id desc limit 1;

select * from finish();
rollback;
