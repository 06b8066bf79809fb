begin;
\ir ../helpers/common.psql
\ir ../helpers/time.psql
select plan(12);

select rdq.create_queue('q');
create function pg_temp.die(name text, class text, version text, give_up_at timestamptz default null, key text default null)
returns void
language plpgsql
as $$
begin
  perform rdq.submit('q', name, 'x', max_attempts => 1, give_up_at => die.give_up_at, dedupe_key => key);
  perform rdq.fail(c.task_id, c.claim_token, 'E', 'order 17 failed', error_class => class)
  from rdq.claim('{q}', 'tester', code_version => version) c;
end
$$;
create function pg_temp.warnings(name text) returns text[]
language sql
begin atomic
  select r.warnings from rdq.redrive_where(queue => 'q', handler => name, dry_run => true) r;
end;

select pg_temp.die('outage', 'TRANSIENT', 'v2') from generate_series(1, 3);
select pg_temp.die('input', 'PERMANENT', 'v1') from generate_series(1, 2);
select pg_temp.die('bug', 'AMBIGUOUS', 'v2');
select is(pg_temp.warnings('outage'), '{}', 'an outage that is over needs no warning');
select ok(w[1] like '2 failed as PERMANENT: they will die again unless%', w[1]) from pg_temp.warnings('input') w;
select is(cardinality(w), 1, 'nothing else is said: they died under an older version') from pg_temp.warnings('input') w;
select ok(w[1] like '1 failed as AMBIGUOUS: their effects may have happened%', w[1]) from pg_temp.warnings('bug') w;
select is(w[2], '1 died under code version v2, which is still the newest that was seen', 'and the version is the same')
from pg_temp.warnings('bug') w;

-- A new version is out, as a runner says.
select rdq.runner_seen('r', 'host', '0.1.0', 'v3', '{q}', 1, 0, 0);
select is(cardinality(w), 1, 'under a newer version that is not said') from pg_temp.warnings('bug') w;

select pg_temp.die('late', 'TRANSIENT', 'v3', give_up_at => clock_timestamp() + interval '2 minutes');
select is(pg_temp.warnings('late'), '{}', 'a deadline to come needs no warning');
select pg_temp.pass('3 minutes');
select ok(w[1] like '1 had a deadline that has passed%', w[1]) from pg_temp.warnings('late') w;
select pg_temp.die('keyed', 'TRANSIENT', 'v3', key => 'k');
select is(pg_temp.warnings('keyed'), '{}', 'a key that is free needs no warning');
select rdq.submit('q', 'twin', 'x', dedupe_key => 'k');
select ok(w[1] like '1 have a dedupe key that a live task has now%', w[1]) from pg_temp.warnings('keyed') w;

select is(
  r.groups -> 0,
  jsonb_build_object(
    'count', 3, 'handler', 'outage', 'error_type', 'E', 'sample_message', 'order 17 failed',
    'fingerprint', rdq.fingerprint('outage', 'E', 'order 18 failed')),
  'the groups say how many of each, the largest first')
from rdq.redrive_where(queue => 'q', dry_run => true) r;
select is(
  (select sum((g ->> 'count')::integer) from jsonb_array_elements(r.groups) g), r.matched::bigint, 'together all that match')
from rdq.redrive_where(queue => 'q', dry_run => true) r;

select * from finish();
rollback;
