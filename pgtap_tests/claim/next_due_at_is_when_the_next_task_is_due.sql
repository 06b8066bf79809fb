begin;
select plan(7);

select rdq.create_queue('a');
select rdq.create_queue('b');
select is(rdq.next_due_at(null), null, 'null where nothing waits');
select rdq.submit('a', 'h', 'x', run_at => '2999-01-03 UTC');
select rdq.submit('b', 'h', 'x', run_at => '2999-01-02 UTC');
select is(rdq.next_due_at('{a}'), '2999-01-03 UTC', 'of one queue');
select is(rdq.next_due_at('{b,a}'), '2999-01-02 UTC', 'the earliest of several');
select is(rdq.next_due_at(null), '2999-01-02 UTC', 'the earliest of all');
select rdq.pause_queue('b');
select is(rdq.next_due_at('{b,a}'), '2999-01-03 UTC', 'a paused queue does not count');
select rdq.submit('a', 'h', 'x');
select ok(rdq.next_due_at('{a}') <= clock_timestamp(), 'it is past where a task is due');
select task_id from rdq.claim('{a}', 'tester');
select is(rdq.next_due_at('{a}'), '2999-01-03 UTC', 'a task in flight waits for nothing');

select * from finish();
rollback;
