-- A role with one capability in one queue, and a collation of its own for which the name of another queue is the same.
begin;
\ir ../helpers/common.psql
\ir ../helpers/roles.psql

create function pg_temp.make_evil() returns boolean
language plpgsql
as $$
begin
  create collation tap.evil (provider = icu, locale = 'und-u-ka-shifted', deterministic = false);
  return 'tenant-12' collate tap.evil = 'tenant-1.2';
exception when others then
  -- A server without ICU: this one is no danger, but it is foreign.
  create collation tap.evil from "ucs_basic";
  return false;
end
$$;
select pg_temp.make_evil() as evil \gset

select rdq.create_queue(q.name) from unnest('{tenant-12,tenant-1.2}'::text[]) q (name);
select pg_temp.create_role(c.name, '{tenant-12}') from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name);
select rdq.submit('tenant-1.2', 'h', 'SECRET') from generate_series(1, 2);
select rdq.submit('tenant-1.2', 'h', 'SECRET', error => '{"class": "PERMANENT"}');
select rdq.set_endpoint('tenant-1.2', 'h', 'https://example.org/', headers => '{"authorization": "SECRET"}');
select count(*) from rdq.claim('{tenant-1.2}', 'theirs', 1);
update rdq.lease set expires_at = now() - interval '1 minute';
select pg_temp.stored() as before \gset

create temporary table attack (statement text);
insert into attack values
  ($$ select string_agg(convert_from(payload, 'UTF8'), '') from rdq.claim(array['tenant-12' collate tap.evil], 'w') $$),
  ($$ select string_agg(headers::text, '') from rdq.callbacks(array['tenant-12' collate tap.evil]) $$),
  ($$ select count(*)::text from rdq.reclaim(10, array['tenant-12' collate tap.evil]) $$),
  ($$ select reclaimed::text from rdq.tick(10, array['tenant-12' collate tap.evil]) $$),
  ($$ select count(*)::text from rdq.dead_letters('tenant-12' collate tap.evil) $$),
  ($$ select matched::text from rdq.redrive_where('tenant-12' collate tap.evil, dry_run => true) $$),
  ($$ select remaining::text from rdq.purge_where('tenant-12' collate tap.evil, dry_run => true) $$),
  ($$ select remaining::text from rdq.cancel_where('tenant-12' collate tap.evil, dry_run => true) $$),
  ($$ select rdq.drop_endpoint('tenant-12' collate tap.evil, 'h')::text $$),
  ($$ select rdq.submit('tenant-1.2' collate tap.evil, 'h', 'x')::text $$),
  ($$ select rdq.pause_queue('tenant-1.2' collate tap.evil)::text $$),
  ($$ select rdq.alter_queue('tenant-1.2' collate tap.evil, '{"lease": 1}')::text $$),
  ($$ select rdq.runner_gone('theirs' collate tap.evil)::text $$),
  ($$ select rdq.grant_access('rdq_test_worker' collate tap.evil, 'admin', '{*}')::text $$);
grant usage on schema tap to public;

select plan(1 + 5 * count(*)::integer) from attack;
select matches(
  pg_temp.as_role('rdq_test_' || c.name, a.statement), '^(0|42501|RD001|RD003|RD007|)$', c.name || ': ' || a.statement)
from unnest('{producer,worker,viewer,operator,admin}'::text[]) c (name)
cross join attack a;
select is(pg_temp.stored(), :'before', 'nothing of the other queue has changed, nor anything else');

select * from finish();
rollback;
