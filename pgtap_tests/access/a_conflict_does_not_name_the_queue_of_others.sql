begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql
select plan(4);

select rdq.create_queue(q.name) from unnest('{payments.eu,payments.us,mails}'::text[]) q (name);
select pg_temp.create_role('producer', '{payments.*}');
select rdq.submit('mails', 'h', 'x') as theirs \gset
select rdq.submit('payments.us', 'h', 'x') as ours \gset

create function pg_temp.refusal(id uuid) returns record
language plpgsql
as $$
declare
  error record;
begin
  set local role rdq_test_producer;
  begin
    perform rdq.submit('payments.eu', 'h', 'x', task_id => id);
  exception when others then
    error := (sqlstate, sqlerrm);
  end;
  reset role;
  return error;
end
$$;

select is(e.code, 'RD005', 'an id of a task in a queue that is not its own') from pg_temp.refusal(:'theirs') e (code text, message text);
select is(e.message, format('task_id %s exists already in another queue', :'theirs'), 'it is not told in which')
from pg_temp.refusal(:'theirs') e (code text, message text);
select is(e.code, 'RD005', 'of one that is') from pg_temp.refusal(:'ours') e (code text, message text);
select is(e.message, format('task_id %s exists already in queue "payments.us"', :'ours'), 'it is')
from pg_temp.refusal(:'ours') e (code text, message text);

select * from finish();
rollback;
