begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(13);

select rdq.create_queue('q', '{"give_up_after": "1 hour"}');
select rdq.submit('q', 'h', 'x', give_up_at => clock_timestamp() - interval '1 minute') as late \gset
select rdq.tick();
select is(t.dead_reason, 'DEADLINE', 'it never ran') from rdq.tasks t where t.task_id = :'late';
select throws_like(format('select rdq.redrive(%L)', :'late'),
  '%was submitted after its deadline%so it has no span to be given anew', 'it has no span');
select is(e.code || ' ' || e.hint, 'RD002 Give the new deadline as give_up_at.', 'and asks for a deadline')
from pg_temp.error_of(format('select rdq.redrive(%L)', :'late')) e;
select is(pg_temp.status_of(:'late'), 'DEAD', 'it stays dead');

-- In bulk it is skipped, counted and warned of.
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as other \gset
select ok('1 were submitted after their own deadline: they will be skipped; rdq.redrive takes each with a give_up_at' = any (r.warnings),
  'a dry run warns')
from rdq.redrive_where('q', dry_run => true) r;
select is(array[r.matched, r.sent, r.skipped], '{2,1,1}', 'it is skipped') from rdq.redrive_where('q') r;
select is(r.state || ' ' || r.skipped_why::text, 'DONE {"no_span": 1, "key_held": 0, "no_longer_dead": 0}', 'and counted')
from rdq.redrives r;
select is(a.after -> 'task_ids' ->> 0, :'late', 'the audit names it') from rdq.audit_log a where a.action = 'skip_redrive';
select is(pg_temp.status_of(:'late'), 'DEAD', 'it stays dead again');
select rdq.redrive(:'late', give_up_at => clock_timestamp() + interval '1 hour');
select is(pg_temp.status_of(:'late'), 'PENDING', 'with a deadline it goes back');
select rdq.cancel(:'late');
select rdq.cancel(:'other');

-- A span counts from the first start that was asked for, not from the submit.
select rdq.submit('q', 'h', 'x', run_at => clock_timestamp() + interval '10 days') as planned \gset
select pg_temp.pass('20 days');
select rdq.tick();
select is(t.dead_reason, 'DEADLINE', 'ten days later its hour is over') from rdq.tasks t where t.task_id = :'planned';
select rdq.redrive(:'planned');
select is(round(extract(epoch from t.give_up_at - clock_timestamp()) / 60)::integer, 60, 'it has that hour again, and not ten days')
from rdq.tasks t
where t.task_id = :'planned';
select rdq.cancel(:'planned');
select rdq.redrive_where('q', dead_reason => 'CANCELLED');
select is(round(extract(epoch from t.give_up_at - clock_timestamp()) / 60)::integer, 60, 'in bulk too')
from rdq.tasks t
where t.task_id = :'planned';

select * from finish();
rollback;
