-- Ten thousand go at once, the rest by tick; what dies meanwhile is not touched (trouble case E4).
begin;
\ir ../helpers/common.psql
select plan(23);

select rdq.create_queue('q');
select pg_temp.write_dead('q', 10020);
select * from rdq.redrive_where(queue => 'q') \gset
select is(
  array[:'state', :'matched', :'sent', :'skipped']::text[], '{RUNNING,10020,10000,0}',
  'the first ten thousand are sent');

-- Meanwhile more tasks die, one of them after it was redriven.
select rdq.submit('q', 'h', 'new', error => '{"class": "PERMANENT"}') as new \gset
select * from pg_temp.claim_one('q') \gset
select rdq.fail(:'task_id', :'claim_token', 'E', error_class => 'PERMANENT');
select is(count(*), 22::bigint, 'twenty and two more are dead') from rdq.dead_letters(max_rows => 100);

select is(t.redriven, 7::bigint, 'a tick is one batch') from rdq.tick(max_tasks => 7) t;
select is(array[s.state, s.sent::text, s.finished_at::text], '{RUNNING,10007,null}', 'the status says how far it is')
from rdq.redrive_status(:'redrive_id') s;

select rdq.pause_redrive(:'redrive_id', 'have a look');
select is(s.state, 'PAUSED', 'paused') from rdq.redrive_status(:'redrive_id') s;
select is(t.redriven, 0::bigint, 'a tick does nothing then') from rdq.tick(max_tasks => 7) t;
select throws_ok(format('select rdq.pause_redrive(%L)', :'redrive_id'), 'RD004', null, 'it is not paused twice');
select is(d.advice like '%' || :'redrive_id' || '%', true, 'the doctor knows of it')
from rdq.doctor() d where d.subject like '%' || :'redrive_id' || '%';
select rdq.resume_redrive(:'redrive_id', 'looks good');
select throws_ok(format('select rdq.resume_redrive(%L)', :'redrive_id'), 'RD004', null, 'nor resumed twice');

-- One of the rest is redriven by itself, one is purged.
create temporary table rest as
select d.task_id, row_number() over (order by d.dead_at, d.task_id) as place
from rdq.dead_letters(max_rows => 100) d
where d.task_id not in (:'new', :'task_id');
select is(count(*), 13::bigint, 'thirteen are left') from rest;
select rdq.redrive(r.task_id) from rest r where r.place = 3;
select rdq.purge(r.task_id) from rest r where r.place = 5;

select is(t.redriven, 7::bigint, 'resumed it goes on where it stopped') from rdq.tick(max_tasks => 7) t;
select ok(t.redriven <= 7, 'until none is left') from rdq.tick(max_tasks => 7) t;
select rdq.tick(max_tasks => 7);
select unnest(array[
  is(s.state, 'DONE', 'it is done'),
  ok(s.finished_at >= s.began_at, 'at a time'),
  is(s.sent, 10018::bigint, 'what it sent'),
  is(s.sent + s.skipped, s.matched, 'what it sent and what it skipped is what matched')
])
from rdq.redrive_status(:'redrive_id') s;

select set_eq(
  $$ select task_id from rdq.dead_letters(max_rows => 100) $$, array[:'new', :'task_id']::uuid[],
  'what died after it began is still dead');
select is(max(d.life), 1, 'nothing was redriven twice') from rdq.due d;
select throws_ok(
  format('select rdq.cancel_redrive(%L)', :'redrive_id'), 'RD004', null, 'what is done is not cancelled');
select is(t.redriven, 0::bigint, 'nor carried on') from rdq.tick() t;
select set_eq(
  $$ select action, reason, affected from rdq.audit_log where redrive_id is not null $$,
  $$
    values ('redrive_where', null, 10020::bigint), ('pause_redrive', 'have a look', 1), ('resume_redrive', 'looks good', 1),
      ('finish_redrive', null, 10018)
  $$,
  'each word is audited, and the end');

select throws_ok(
  format('select rdq.%I(%L)', f.name, '01890000-0000-7000-8000-000000000001'), 'RD003', null,
  f.name || ': an unknown one')
from (values ('pause_redrive'), ('cancel_redrive')) f (name);

select * from finish();
rollback;
