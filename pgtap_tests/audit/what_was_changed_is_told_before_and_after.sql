begin;
\ir ../helpers/common.psql
select plan(14);

create role rdq_test_ada;
select rdq.create_queue('q');

create function pg_temp.last(action text, out before jsonb, out after jsonb)
language sql
begin atomic
  select a.before, a.after from rdq.audit_log a where a.action = last.action order by a.id desc limit 1;
end;

select rdq.alter_queue('q', '{"max_attempts": 3, "keep_dead": "90 days"}');
select is(
  array[l.before ->> 'max_attempts', l.before ->> 'keep_dead', l.after ->> 'max_attempts', l.after ->> 'keep_dead'],
  '{8,NULL,3,2160:00:00}', 'settings')
from pg_temp.last('alter_queue') l;

select rdq.pause_queue('q', 'a reason');
select is(
  l::text, format('("{""paused_at"": null, ""pause_reason"": null}","{""paused_at"": %s, ""pause_reason"": ""a reason""}")',
    replace(to_jsonb(q.paused_at)::text, '"', '""')), 'a pause')
from pg_temp.last('pause_queue') l cross join rdq.queues q;
select rdq.pause_queue('q', 'a better reason');
select is(
  array[l.before ->> 'pause_reason', l.after ->> 'pause_reason'], '{a reason,a better reason}', 'another reason for it')
from pg_temp.last('pause_queue') l;
select is(l.before -> 'paused_at', l.after -> 'paused_at', 'which does not begin it anew') from pg_temp.last('pause_queue') l;
select rdq.resume_queue('q');
select is(
  array[l.before ->> 'pause_reason', l.after ->> 'pause_reason', l.after ->> 'paused_at'], '{a better reason,NULL,NULL}',
  'its end')
from pg_temp.last('resume_queue') l;

-- Header fields may be secrets; the variable's name is none.
select rdq.set_endpoint('q', 'h', 'https://example.org/a', headers => '{"Authorization": "Bearer hidden-1", "X-Tenant": "hidden-t"}',
  secret => 'env:HOOK');
select rdq.set_endpoint('q', 'h', 'https://example.org/b', headers => '{"Authorization": "Bearer hidden-2", "X-Tenant": "hidden-t"}',
  secret => 'env:HOOK');
select is(
  array[l.before ->> 'url', l.after ->> 'url', l.after ->> 'secret'],
  '{https://example.org/a,https://example.org/b,env:HOOK}', 'an endpoint')
from pg_temp.last('set_endpoint') l;
select is(
  l.after -> 'headers', '{"Authorization": "not shown, changed", "X-Tenant": "not shown"}'::jsonb,
  'its header fields by name, and which has changed')
from pg_temp.last('set_endpoint') l;
select rdq.drop_endpoint('q', 'h');
select is(l.before ->> 'url', 'https://example.org/b', 'an endpoint that is dropped') from pg_temp.last('drop_endpoint') l;
select is(count(*), 0::bigint, 'no value of a header field is in the audit') from rdq.audit a where a::text like '%hidden%';

select rdq.grant_access('rdq_test_ada', 'viewer', '{q}');
select rdq.grant_access('rdq_test_ada', 'viewer', '{q,r}');
select is(l.before || l.after, '{"role": "rdq_test_ada", "capability": "viewer", "queues": ["q", "r"]}'::jsonb, 'a right')
from pg_temp.last('grant_access') l;
select is(l.before -> 'queues', '["q"]'::jsonb, 'what it was before') from pg_temp.last('grant_access') l;
select rdq.revoke_access('rdq_test_ada', 'viewer');
select is(
  l::text, '("{""role"": ""rdq_test_ada"", ""queues"": [""q"", ""r""], ""capability"": ""viewer""}",)', 'a right that is taken')
from pg_temp.last('revoke_access') l;

select rdq.submit('q', 'h', 'x') as id \gset
select rdq.cancel(:'id');
select is(
  l::text, '("{""status"": ""PENDING""}","{""status"": ""DEAD"", ""dead_reason"": ""CANCELLED""}")', 'a task that is cancelled')
from pg_temp.last('cancel') l;
select to_jsonb(t.created_at) #>> '{}' as created_at from rdq.task t \gset
select rdq.purge(:'id');
select is(
  l.before, jsonb_build_object('handler', 'h', 'status', 'DEAD', 'dead_reason', 'CANCELLED', 'created_at', :'created_at'),
  'a task that is purged, without what was in it')
from pg_temp.last('purge') l;

select * from finish();
rollback;
