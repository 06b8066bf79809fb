-- The collation of an argument decides what "=" means in a function, also in one with the owner's rights. Here every
-- public function is called with each of its texts under a collation of the caller's: it does what it always does.
begin;
\ir ../helpers/common.psql

do $$
begin
  create collation pg_temp.evil (provider = icu, locale = 'und-u-ka-shifted', deterministic = false);
exception when others then
  -- A server without ICU has nothing worse than this.
  create collation pg_temp.evil from "ucs_basic";
end
$$;

-- In each call ~ stands for the collation. A function that is new, and has an argument of text, belongs here.
create temporary table call (name text, statement text);
insert into call values
  ('submit', $$ rdq.submit('q'~, 'h'~, 'x'::text~, dedupe_key => 'k'~, handler_version => 'v'~, content_type => 'text/plain'~) $$),
  ('submit', $$ rdq.submit('q'~, 'h'~, '{}'::json, content_type => 'application/json'~) $$),
  ('submit', $$ rdq.submit('q'~, 'h'~, '{}'::jsonb) $$),
  ('submit', $$ rdq.submit('q'~, 'h'~, 'x'::bytea, error => '{"class": "PERMANENT"}') $$),
  ('submit_many', $$ rdq.submit_many('q'~, '[{"handler": "h", "payload": {"a": 1}, "dedupe_key": "n"}]'::text~) $$),
  ('submit_many', $$ rdq.submit_many('q'~, '[{"handler": "h", "payload": 1}]'::json) $$),
  ('submit_many', $$ rdq.submit_many('q'~, '[{"handler": "h", "payload": 1}]'::jsonb) $$),
  ('claim', $$ rdq.claim(array['q'~, 'r'], 'runner'~, 10, code_version => 'v'~) $$),
  ('fail', $$ rdq.fail((select task_id from rdq.lease limit 1), (select claim_token from rdq.lease limit 1), 'E'~, 'm'~, 's'~, error_class => 'TRANSIENT'~) $$),
  ('release', $$ rdq.release(array(select task_id from rdq.lease), array(select claim_token from rdq.lease), 'why'~) $$),
  ('reclaim', $$ rdq.reclaim(10, array['q'~]) $$),
  ('next_due_at', $$ rdq.next_due_at(array['q'~]) $$),
  ('tick', $$ rdq.tick(10, array['q'~]) $$),
  ('policies', $$ rdq.policies(array['q'~]) $$),
  ('callbacks', $$ rdq.callbacks(array['q'~]) $$),
  ('runner_seen', $$ rdq.runner_seen('runner'~, 'host'~, '1'~, 'v'~, array['q'~]) $$),
  ('runner_gone', $$ rdq.runner_gone('runner'~) $$),
  ('dead_letters', $$ rdq.dead_letters('q'~, 'h'~, 'E*'~, 'PERMANENT'~, 'PERMANENT'~, (select fingerprint from rdq.dead limit 1)~) $$),
  ('dead_letters', $$ rdq.dead_letters('q'~, after => (select page from rdq.dead_letters limit 1)~) $$),
  ('dead_letter_groups', $$ rdq.dead_letter_groups('q'~, 'h'~, 'E*'~, 'PERMANENT'~, 'PERMANENT'~) $$),
  ('dead_letter_timeline', $$ rdq.dead_letter_timeline('q'~, 'h'~, 'E*'~, 'PERMANENT'~, 'PERMANENT'~) $$),
  ('fingerprint', $$ rdq.fingerprint('h'~, 'E'~, 'order 4711 of ''x'''~) $$),
  ('redrive', $$ rdq.redrive((select task_id from rdq.dead limit 1), 'edited'::text~, reason => 'why'~, content_type => 'text/plain'~, to_queue => 'r'~, to_handler => 'i'~, to_handler_version => 'v'~) $$),
  ('redrive', $$ rdq.redrive((select task_id from rdq.dead limit 1), '{}'::json, reason => 'why'~) $$),
  ('redrive', $$ rdq.redrive((select task_id from rdq.dead limit 1), '{}'::jsonb, reason => 'why'~) $$),
  ('redrive', $$ rdq.redrive((select task_id from rdq.dead limit 1), 'x'::bytea, reason => 'why'~) $$),
  ('redrive_where', $$ rdq.redrive_where('q'~, 'h'~, 'E*'~, 'PERMANENT'~, 'PERMANENT'~, reason => 'why'~, to_queue => 'r'~, to_handler => 'i'~, to_handler_version => 'v'~) $$),
  ('redrive_where', $$ rdq.redrive_where('q'~, dry_run => true) $$),
  ('pause_redrive', $$ rdq.pause_redrive((select redrive_id from rdq.redrive_run where state = 'RUNNING'), 'why'~) $$),
  ('resume_redrive', $$ rdq.resume_redrive((select redrive_id from rdq.redrive_run where state = 'PAUSED'), 'why'~) $$),
  ('cancel_redrive', $$ rdq.cancel_redrive((select redrive_id from rdq.redrive_run where state = 'RUNNING'), 'why'~) $$),
  ('cancel', $$ rdq.cancel((select task_id from rdq.due limit 1), 'why'~) $$),
  ('cancel_where', $$ rdq.cancel_where('q'~, 'h'~, 'PENDING'~, reason => 'why'~) $$),
  ('purge', $$ rdq.purge((select task_id from rdq.dead limit 1), 'why'~) $$),
  ('purge_where', $$ rdq.purge_where('q'~, 'h'~, 'E*'~, 'PERMANENT'~, 'PERMANENT'~, reason => 'why'~) $$),
  ('pause_queue', $$ rdq.pause_queue('q'~, 'why'~) $$),
  ('resume_queue', $$ rdq.resume_queue('paused'~) $$),
  ('create_queue', $$ rdq.create_queue('q'~, '{"lease": 9}') $$),
  ('create_queue', $$ rdq.create_queue('new'~) $$),
  ('alter_queue', $$ rdq.alter_queue('q'~, '{"lease": 9}') $$),
  ('drop_queue', $$ rdq.drop_queue('empty'~) $$),
  ('set_endpoint', $$ rdq.set_endpoint('q'~, 'h'~, 'https://example.org/'~, secret => 'env:S'~) $$),
  ('drop_endpoint', $$ rdq.drop_endpoint('r'~, 'h'~) $$),
  ('grant_access', $$ rdq.grant_access('rdq_test_ada'~, 'viewer'~, array['q'~]) $$),
  ('revoke_access', $$ rdq.revoke_access('rdq_test_bob'~, 'viewer'~) $$),
  ('purge_audit', $$ rdq.purge_audit('1 year', 'why'~) $$),
  ('_queue_patterns', $$ rdq._queue_patterns('viewer'~) $$);
create temporary table collation_of (name text);
insert into collation_of values ('pg_catalog."C"'), ('ucs_basic'), ('"POSIX"'), ('pg_temp.evil');

create role rdq_test_ada;
create role rdq_test_bob;
select rdq.create_queue(q.name) from unnest('{q,r,empty,paused}'::text[]) q (name);
select rdq.pause_queue('paused');
select rdq.grant_access('rdq_test_bob', 'viewer');
select rdq.set_endpoint('r', 'h', 'https://example.org/');
select rdq.submit('q', 'h', 'x', error => '{"type": "E", "class": "PERMANENT"}') from generate_series(1, 3);
select rdq.submit('q', 'h', 'x', dedupe_key => 'k' || n) from generate_series(1, 4) n;
select count(*) from rdq.claim('{q}', 'tester', 2);
select rdq.redrive_where('q', per_second => 0.001);
select rdq.pause_redrive(r.redrive_id) from rdq.redrive_where('q', per_second => 0.001) r;

-- The error, or how many rows there were and what is stored then (but for ids and times), and all is as it was.
create function pg_temp.outcome(statement text) returns text
language plpgsql
as $$
declare
  rows bigint;
begin
  execute 'select count(*) from (select * from ' || statement || ') s' into rows;
  raise exception using errcode = 'ZZ000', message = concat_ws(' ', rows,
    (select jsonb_agg(jsonb_build_array(queue, lease, paused_at is null) order by queue) from rdq.queue),
    (select jsonb_agg(jsonb_build_array(queue, n) order by queue) from (select queue, count(*) n from rdq.due group by 1) t),
    (select jsonb_agg(jsonb_build_array(queue, n) order by queue) from (select queue, count(*) n from rdq.dead group by 1) t),
    (select count(*) from rdq.lease), (select count(*) from rdq.runner), (select count(*) from rdq.endpoint),
    (select count(*) from rdq.access), (select count(*) from rdq.audit));
exception when sqlstate 'ZZ000' then
  return sqlerrm;
when others then
  return sqlstate || ' ' || sqlerrm;
end
$$;

select plan(2 + (count(*) * 4)::integer) from call;
select is_empty(
  $$
    select distinct p.proname::text
    from rdq._capabilities() c
    cross join unnest(c.names) n (name)
    join pg_proc p on p.pronamespace = 'rdq'::regnamespace and p.proname = n.name
    where exists (
        select from unnest(p.proargtypes) a (type) join pg_type t on t.oid = a.type where t.typcollation <> 0
      )
      -- These call others with what they were given, and compare nothing.
      and p.proname not in ('_may_see_redrive')
      and not exists (select from call k where k.name = p.proname)
  $$,
  'every public function that takes a text is called here');
select is_empty(
  $$ select c.statement, pg_temp.outcome(replace(c.statement, '~', '')) from call c where pg_temp.outcome(replace(c.statement, '~', '')) !~ '^[0-9]+ \[' $$,
  'each of the calls does something');
select is(
  pg_temp.outcome(replace(c.statement, '~', ' collate ' || o.name)), pg_temp.outcome(replace(c.statement, '~', '')),
  o.name || ': ' || c.statement)
from call c
cross join collation_of o;

select * from finish();
rollback;
