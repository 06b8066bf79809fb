-- Prune: what an earlier version had and this one has not. After all files were loaded in this transaction, whatever
-- was not, is of an older version: private functions, and older parameters of a public one. A function that somebody
-- else put into the schema under a name of its own stays. Before access.sql, which touches all of them.

do $$
declare
  stale regprocedure;
begin
  for stale in
    select p.oid
    from pg_proc p
    where p.pronamespace = 'rdq'::regnamespace
      -- Written before this transaction had its number, so not by it, nor by a savepoint in it.
      and age(p.xmin) > age(pg_current_xact_id()::xid)
      and (left(p.proname, 1) = '_' or exists (
        select
        from pg_proc n
        where n.pronamespace = p.pronamespace and n.proname = p.proname and age(n.xmin) <= age(pg_current_xact_id()::xid)
      ))
  loop
    execute format('drop function %s', stale);
  end loop;
end
$$;
