begin;
\ir ../helpers/common.psql
select plan(9);

select rdq.create_queue('q');
select rdq.submit('q', 'h', '{"amount": "12,00"}', headers => '{"a": "1"}', error => '{"class": "PERMANENT"}') as id \gset

-- The payload in words.
create function pg_temp.told(content jsonb) returns jsonb
language sql
begin atomic
  select content || case when content ? 'payload'
    then jsonb_build_object('payload', convert_from(decode(content ->> 'payload', 'base64'), 'UTF8'))
    else '{}'
  end;
end;

set local rdq.actor = 'ada';
select rdq.redrive(:'id', '{"amount": 12.00}', reason => 'comma');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '{"amount": 13.00}'::json, content_type => 'application/json', reason => 'wrong amount');
select rdq.cancel(:'id');
select rdq.redrive(:'id', headers => '{"a": "1", "b": "2"}', reason => 'a header');
select rdq.cancel(:'id');
select rdq.redrive(:'id', content_type => 'text/csv', reason => 'a content type');
select rdq.cancel(:'id');
select rdq.redrive(:'id', reason => 'as it is');
select rdq.cancel(:'id');
select rdq.redrive(:'id', '{"amount": 13.00}', content_type => 'text/csv', headers => '{"b": "2", "a": "1"}', reason => 'as it was');

select results_eq(
  $$
    select actor, reason, pg_temp.told(before), pg_temp.told(after)
    from rdq.audit_log
    where action = 'redrive'
    order by id
  $$,
  $$
    values
      ('ada', 'comma', '{"payload": "{\"amount\": \"12,00\"}"}'::jsonb, '{"payload": "{\"amount\": 12.00}"}'::jsonb),
      ('ada', 'wrong amount',
        '{"payload": "{\"amount\": 12.00}", "content_type": "text/plain; charset=utf-8"}',
        '{"payload": "{\"amount\": 13.00}", "content_type": "application/json"}'),
      ('ada', 'a header', '{"headers": {"a": "1"}}', '{"headers": {"a": "1", "b": "2"}}'),
      ('ada', 'a content type', '{"content_type": "application/json"}', '{"content_type": "text/csv"}'),
      ('ada', 'as it is', null, null),
      ('ada', 'as it was', null, null)
  $$,
  'exactly what has changed, before and after: a second edit keeps both');
select is(count(*), 6::bigint, 'one row a redrive, with its task')
from rdq.audit_log a where a.action = 'redrive' and a.task_id = :'id' and a.queue = 'q' and a.affected = 1;

select rdq.cancel(:'id');
select rdq.redrive(:'id', '\x00ff'::bytea);
select is(a.after ->> 'payload', 'AP8=', 'bytes, in base64') from rdq.audit_log a order by a.id desc limit 1;
select rdq.cancel(:'id');
select rdq.redrive(:'id', repeat('x', 1000));
select is(octet_length(decode(a.after ->> 'payload', 'base64')), 1000, 'the whole of a long one')
from rdq.audit_log a order by a.id desc limit 1;
select unalike(a.after::text, '%\n%', 'in one line') from rdq.audit_log a order by a.id desc limit 1;

-- Bulk redrive never edits.
select is_empty(
  $$
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace and p.proname = 'redrive_where'
      and p.proargnames && '{payload,content_type,headers}'::text[]
  $$,
  'a bulk redrive takes no edit');
select md5(t::text) as before from rdq.task t \gset
select rdq.cancel(:'id');
select is(r.sent, 1::bigint, 'a bulk redrive') from rdq.redrive_where(queue => 'q') r;
select is(md5(t::text), :'before', 'does not change the task') from rdq.task t;

-- The task is gone, what was edited is not.
select rdq.cancel(:'id');
select rdq.purge(:'id');
select is(count(*), 6::bigint, 'the audit keeps the edits of a task that was purged')
from rdq.audit_log a where a.task_id = :'id' and a.before is not null and a.action = 'redrive';

select * from finish();
rollback;
