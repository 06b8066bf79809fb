begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(20);

select rdq.create_queue('a');
select rdq.create_queue('b');
select pg_temp.create_role('operator', '{a}');
select rdq.submit('a', 'h', 'x', dedupe_key => 'k', handler_version => '1', error => '{"class": "PERMANENT"}') as id \gset

select throws_ok(format('select rdq.redrive(%L, to_queue => %L)', :'id', 'none'), 'RD001', null, 'an unknown queue');
select throws_ok(format('select rdq.redrive(%L, to_handler => %L)', :'id', 'No'), 'RD002', null, 'a handler that cannot be');
select throws_ok(format('select rdq.redrive(%L, to_handler_version => %L)', :'id', ''), 'RD002', null, 'an empty version');
select is(pg_temp.as_role('rdq_test_operator', format('select rdq.redrive(%L, to_queue => %L)', :'id', 'b')), 'RD007',
  'a queue in which the caller has no right');
select is(pg_temp.as_role('rdq_test_operator', $$ select rdq.redrive_where('a', to_queue => 'b') $$), 'RD007',
  'nor in bulk');
select is(pg_temp.status_of(:'id'), 'DEAD', 'it stays where it is');

-- The dedupe key goes along.
select rdq.submit('b', 'h', 'x', dedupe_key => 'k') as twin \gset
select throws_ok(format('select rdq.redrive(%L, to_queue => %L)', :'id', 'b'), 'RD008',
  format('task %s stays dead: a live task in queue "b" has its dedupe key', :'id'), 'a live task there has its key');
select rdq.cancel(:'twin');
select rdq.redrive(:'id', to_queue => 'b', to_handler => 'g', to_handler_version => '2');
select is(concat_ws(' ', c.queue, c.handler, c.handler_version, c.attempt_no, c.redrive_count), 'b g 2 2 1',
  'it is there, and goes on as another life')
from rdq.claim('{a,b}', 'tester') c;
select is(rdq.submit('b', 'h', 'x', dedupe_key => 'k'), :'id', 'its key holds there');
select isnt(rdq.submit('a', 'h', 'x', dedupe_key => 'k'), :'id', 'and no more where it was');
select rdq.cancel_where('a');
select pg_temp.rows_are(
  $$ select queue, before, after from rdq.audit_log where action = 'redrive' $$,
  $$ values ('a', '{"queue": "a", "handler": "h", "handler_version": "1"}'::jsonb,
    '{"queue": "b", "handler": "g", "handler_version": "2"}'::jsonb) $$,
  'the audit says from where, and to where');
select rdq.cancel(:'id');
select rdq.redrive(:'id');
select is(t.queue || ' ' || t.handler, 'b g', 'it stays there for good') from rdq.tasks t where t.task_id = :'id';

-- In bulk.
select pg_temp.write_dead('a', 3);
update rdq.task set dedupe_key = 'bulk' where id = (select task_id from rdq.dead where queue = 'a' and reason = 'PERMANENT' limit 1);
select is(r.sent, 3::bigint, 'all of them are sent')
from rdq.redrive_where('a', dead_reason => 'PERMANENT', to_queue => 'b', to_handler => 'bulk', to_handler_version => '3') r;
select is(count(*), 3::bigint, 'elsewhere')
from rdq.tasks t
where t.queue = 'b' and t.handler = 'bulk' and t.handler_version = '3' and t.status = 'PENDING';
select is(count(*), 3::bigint, 'with the queue of their tickets') from rdq.due d join rdq.task t on t.id = d.task_id where d.queue = 'b' and t.handler = 'bulk';
select is(d.queue, 'b', 'a dedupe key goes along')
from rdq.dedupe d
join rdq.task t on t.id = d.task_id and t.dedupe_key = 'bulk';
select is(r.to_queue || ' ' || r.to_handler || ' ' || r.to_handler_version, 'b bulk 3', 'it is shown where to') from rdq.redrives r;
select is(a.after, '{"to_queue": "b", "to_handler": "bulk", "to_handler_version": "3"}', 'and audited')
from rdq.audit_log a
where a.action = 'redrive_where';

-- Where it sends to a queue that is gone, it halts.
select rdq.create_queue('c');
select pg_temp.write_dead('a', 30);
select * from rdq.redrive_where('a', dead_reason => 'PERMANENT', per_second => 0.001, to_queue => 'c') \gset
select rdq.cancel_where('c');
select rdq.purge_where('c');
delete from rdq.queue where queue = 'c';
update rdq.redrive_run set next_due_at = clock_timestamp();
select is(t.redriven, 0::bigint, 'to a queue that is gone nothing is sent') from rdq.tick() t;
select is(s.state_reason, 'queue "c", to which it sends, does not exist any more', 'it halts') from rdq.redrive_status(:'redrive_id') s;

select * from finish();
rollback;
