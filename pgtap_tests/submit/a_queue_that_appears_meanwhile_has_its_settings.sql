-- Created by another session after submit() has looked and before it refuses.
begin;
select plan(2);

create or replace function rdq._queue(queue text) returns rdq.queue
language plpgsql
as $$
begin
  if not exists (select from rdq.queue q where q.queue = _queue.queue) then
    perform rdq.create_queue(queue, '{"give_up_after": "1 hour"}');
  end if;
  return (select q from rdq.queue q where q.queue = _queue.queue);
end
$$;

select lives_ok($$ select rdq.submit('q', 'h', 'x') $$, 'a submit into it is taken');
select isnt(d.give_up_at, null, 'with the deadline that its settings say') from rdq.due d;

select * from finish();
rollback;
