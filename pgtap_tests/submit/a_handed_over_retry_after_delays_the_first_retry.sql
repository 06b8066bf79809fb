begin;
select plan(3);

select rdq.create_queue('q', '{"backoff_base": "10 seconds", "jitter": 0}');

create function pg_temp.wait_after(retry_after jsonb) returns interval
language plpgsql
as $$
declare
  id constant uuid := rdq.submit(
    'q', 'h', 'x'::text, error => jsonb_build_object('class', 'TRANSIENT', 'retry_after', retry_after)
  );
begin
  return (
    select date_trunc('second', d.due_at - a.finished_at + interval '0.5 seconds')
    from rdq.due d
    join rdq.attempt a on a.task_id = d.task_id
    where d.task_id = id
  );
end
$$;

select is(pg_temp.wait_after('3600'), '1 hour', 'a consumer that was asked to wait waits');
select is(pg_temp.wait_after('1'), '10 seconds', 'never less than the first rung');
select is(pg_temp.wait_after('"soon"'), '10 seconds', 'what says nothing asks for nothing');

select * from finish();
rollback;
