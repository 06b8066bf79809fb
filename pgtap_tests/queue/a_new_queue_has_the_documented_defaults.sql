begin;
select plan(18);

select rdq.create_queue('q');

select is(q.max_attempts, 8, 'max_attempts') from rdq.queues q where q.queue = 'q';
select is(q.ambiguous_attempts, 5, 'ambiguous_attempts') from rdq.queues q where q.queue = 'q';
select is(q.vanish_limit, 3, 'vanish_limit') from rdq.queues q where q.queue = 'q';
select is(q.max_releases, 10, 'max_releases') from rdq.queues q where q.queue = 'q';
select is(q.backoff_base, interval '1 minute', 'backoff_base') from rdq.queues q where q.queue = 'q';
select is(q.backoff_factor, 2::double precision, 'backoff_factor') from rdq.queues q where q.queue = 'q';
select is(q.backoff_cap, interval '1 hour', 'backoff_cap') from rdq.queues q where q.queue = 'q';
select is(q.ladder, null, 'ladder') from rdq.queues q where q.queue = 'q';
select is(q.jitter, 0.2::double precision, 'jitter') from rdq.queues q where q.queue = 'q';
select is(q.lease, interval '60 seconds', 'lease') from rdq.queues q where q.queue = 'q';
select is(q.handler_timeout, null, 'handler_timeout') from rdq.queues q where q.queue = 'q';
select is(q.give_up_after, null, 'give_up_after') from rdq.queues q where q.queue = 'q';
select is(q.error_rules, '[]', 'error_rules') from rdq.queues q where q.queue = 'q';
select is(q.keep_succeeded, interval '1 day', 'keep_succeeded') from rdq.queues q where q.queue = 'q';
select is(q.keep_dead, null, 'keep_dead: for ever') from rdq.queues q where q.queue = 'q';
select is(q.max_payload_bytes, 1048576, 'max_payload_bytes') from rdq.queues q where q.queue = 'q';
select is(q.notify, true, 'notify') from rdq.queues q where q.queue = 'q';
select is(q.paused_at, null, 'it is not paused') from rdq.queues q where q.queue = 'q';

select * from finish();
rollback;
