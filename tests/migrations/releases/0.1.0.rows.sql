-- Every kind of row that a database of 0.1.0 can have. 0.1.0.sql.gz is a dump of it, made by
--   createdb r && rdq-runner migrate --dsn dbname=r && psql -d r -f 0.1.0.rows.sql     # with rdq-runner 0.1.0
--   pg_dump --no-owner --no-acl --no-toast-compression -n rdq -n rdq_migrations r | gzip -n9 > 0.1.0.sql.gz   # with pg_dump 15
select rdq.create_queue('plain');
select rdq.create_queue('every.setting', '{"max_attempts": 2, "ambiguous_attempts": 1, "vanish_limit": 1, "max_releases": 0,
  "backoff_base": "1 second", "backoff_factor": 3, "backoff_cap": "1 minute", "ladder": ["1 second", "1 hour"], "jitter": 0,
  "lease": "1 hour", "handler_timeout": "30 seconds", "give_up_after": "1 day",
  "error_rules": [{"match": "Net*", "class": "TRANSIENT"}], "keep_succeeded": "forever", "keep_dead": "90 days",
  "max_payload_bytes": 1000, "on_version_mismatch": "dead", "notify": false}');
select rdq.create_queue('a-b'), rdq.create_queue('ab'), rdq.create_queue('a.b'), rdq.create_queue('a_b');
select rdq.pause_queue('a-b', 'why');

select rdq.submit('plain', 'h', 'text'), rdq.submit('plain', 'h', '{"a": 1}'::json), rdq.submit('plain', 'h', '\x00ff'::bytea),
  rdq.submit('plain', 'h', 'x', headers => '{"traceparent": "t"}', content_type => 'text/csv', handler_version => '7', max_attempts => 3);
select rdq.submit('a-b', 'later', 'x', run_at => '2999-01-01', give_up_at => '2999-02-01', dedupe_key => 'key');
select rdq.submit('every.setting', 'retried', 'x', error => '{"type": "NetError", "message": "m", "stack": "s", "detail": {"a": 1}}');
select count(*) from rdq.submit_many('ab', (select jsonb_agg(jsonb_build_object('handler', 'h', 'payload', n)) from generate_series(1, 20) n));
select rdq.submit('a.b', 'dies', 'x', error => jsonb_build_object('type', 'E' || n, 'message', 'order ' || n || ' füür "x"', 'class', 'PERMANENT'))
from generate_series(1, 8) n;

-- In flight, expired, succeeded, failed, released, vanished.
select count(*) from rdq.claim('{ab}', 'holder', 2, lease => '1 day', code_version => 'v1');
select count(*) from rdq.claim('{ab}', 'expired', 1);
update rdq.lease set expires_at = now() - interval '1 hour' where runner = 'expired';
select rdq.complete(c.task_id, c.claim_token) from rdq.claim('{every.setting,plain}', 'w', 2) c;
create temporary table held as select * from rdq.claim('{a_b,plain}', 'w', 3);
select f.* from held h cross join lateral rdq.fail(h.task_id, h.claim_token, 'E', 'm', 's', '{"a": 1}', 'TRANSIENT', '1 hour') f limit 1;
select rdq.release(array[h.task_id], array[h.claim_token], 'shutdown', '1 hour') from held h offset 1 limit 1;

-- Dead, for every reason.
insert into rdq.task (id, queue, handler, payload, max_attempts, created_at)
select md5(r.reason)::uuid, 'a.b', 'dead', 'x', 1, '2026-01-01Z'
from unnest('{EXHAUSTED,PERMANENT,AMBIGUOUS,DEADLINE,VANISHED,UNROUTABLE,CANCELLED}'::text[]) r (reason);
insert into rdq.attempt (task_id, attempt_no, life, queue, outcome, error_class, error_type, message, runner, started_at, finished_at, claim_token, late_outcome, late_at)
select md5(r.reason)::uuid, 1, 0, 'a.b', 'FAILED', 'AMBIGUOUS', 'E', 'm', 'w', '2026-01-01Z', '2026-01-01 00:01Z', gen_random_uuid(), 'SUCCEEDED', '2026-01-01 00:02Z'
from unnest('{EXHAUSTED,PERMANENT,AMBIGUOUS,DEADLINE,VANISHED,UNROUTABLE,CANCELLED}'::text[]) r (reason);
insert into rdq.dead (task_id, queue, handler, life, dead_at, reason, error_class, error_type, message, fingerprint)
select md5(r.reason)::uuid, 'a.b', 'dead', 0, '2026-01-01 00:01Z', r.reason, 'AMBIGUOUS', 'E', 'm', rdq.fingerprint('dead', 'E', 'm')
from unnest('{EXHAUSTED,PERMANENT,AMBIGUOUS,DEADLINE,VANISHED,UNROUTABLE,CANCELLED}'::text[]) r (reason);

-- Redrives in every state, and one of one task with an edit.
select rdq.redrive_where('a.b', dead_reason => 'EXHAUSTED');
select rdq.pause_redrive(r.redrive_id, 'why') from rdq.redrive_where('a.b', handler => 'dies', per_second => 0.001) r;
select rdq.cancel_redrive(r.redrive_id) from rdq.redrive_where('a.b', handler => 'dies', per_second => 0.001) r;
select rdq.redrive_where('a.b', handler => 'dies', per_second => 0.001, canary => 1);
insert into rdq.redrive_run
select (jsonb_populate_record(r, '{"redrive_id": "00000000-0000-7000-8000-000000000001", "state": "HALTED", "state_reason": "1 of 1"}')).*
from rdq.redrive_run r limit 1;
select rdq.redrive(md5('CANCELLED')::uuid, 'edited', reason => 'why');

select rdq.set_endpoint('plain', 'hook', 'https://example.org/hook', headers => '{"authorization": "x"}', secret => 'env:SECRET',
  response_rules => '[{"status": "409", "class": "SUCCEEDED"}]');
select rdq.runner_seen('runner-1', 'host', '0.1.0', 'v1', '{plain,ab}', 8, 2, 1);
create role rdq_release_worker;
create role rdq_release_gone;
select rdq.grant_access('rdq_release_worker', 'worker', '{plain,a*}'), rdq.grant_access('rdq_release_worker', 'viewer');
select rdq.grant_access('rdq_release_gone', 'operator');
drop owned by rdq_release_gone;
drop role rdq_release_gone;
insert into rdq.low_water values ('plain', now(), now(), now(), now(), '{}');
insert into rdq.queue_count values (now(), '1 second', '[]');
insert into rdq.audit (at, actor, action, affected) values ('2024-01-01Z', 'nobody', 'old', 1);
