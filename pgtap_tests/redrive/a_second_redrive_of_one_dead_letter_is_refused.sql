-- Trouble case E3, one after the other.
begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');
select rdq.submit('q', 'h', 'x', error => '{"class": "PERMANENT"}') as id \gset

select lives_ok(format('select rdq.redrive(%L)', :'id'), 'once');
select throws_ok(format('select rdq.redrive(%L)', :'id'), 'RD004', null, 'not twice');
select is(r.matched, 0::bigint, 'nor in bulk') from rdq.redrive_where(queue => 'q') r;
select is(count(*), 1::bigint, 'one audit row for the one that happened')
from rdq.audit_log a
where a.action = 'redrive';
select is(t.redrive_count, 1, 'it was redriven once') from rdq.tasks t where t.task_id = :'id';
select is(count(*), 1::bigint, 'it has one ticket') from rdq.due;

select * from finish();
rollback;
