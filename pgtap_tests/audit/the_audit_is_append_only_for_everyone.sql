begin;
\ir ../helpers/common.psql
select plan(14);

select rdq.create_queue('q');
select count(*) as before from rdq.audit \gset
select pg_get_userbyid(n.nspowner) as owner from pg_namespace n where n.nspname = 'rdq' \gset

create function pg_temp.tries(who text) returns setof text
language plpgsql
as $$
declare
  sample record;
  error record;
begin
  for sample in select * from (values
    ('an update', 'update rdq.audit set actor = ''nobody'''),
    ('an update of nothing', 'update rdq.audit set actor = ''nobody'' where false'),
    ('a delete', 'delete from rdq.audit'),
    ('a truncate', 'truncate rdq.audit'),
    ('an upsert', 'insert into rdq.audit (id, at, actor, action, affected) overriding system value
      values ((select min(id) from rdq.audit), now(), ''nobody'', ''none'', 0)
      on conflict (id) do update set actor = ''nobody''')
  ) s (name, statement) loop
    execute format('set local role %I', who);
    error := pg_temp.error_of(sample.statement);
    reset role;
    return next is(error.code, 'RD007', format('%s by %s', sample.name, who));
  end loop;
end
$$;

select pg_temp.tries(session_user);
select pg_temp.tries(:'owner');

select ok(e.message like '%append only%', 'the message says so: ' || e.message)
from pg_temp.error_of('delete from rdq.audit') e;
select ok(pg_temp.hint_of('delete from rdq.audit') > '', 'with a hint');
select is(count(*), :'before'::bigint, 'nothing was changed') from rdq.audit a where a.actor <> 'nobody';
select rdq.pause_queue('q');
select is(count(*), :'before'::bigint + 1, 'a row is added by acting') from rdq.audit;

select * from finish();
rollback;
