-- A grant is to a role, whatever it is called: renamed, it keeps its queues; a new role of an old name has none. Grants
-- to roles that do not exist any more give nothing to anybody, and go.

do $$
begin
  if (
    select a.atttypid = 'text'::regtype from pg_attribute a where a.attrelid = 'rdq.access'::regclass and a.attname = 'role'
  ) then
    delete from rdq.access a where to_regrole(quote_ident(a.role)) is null;
    alter table rdq.access alter column role type regrole using to_regrole(quote_ident(role));
  end if;
end
$$;
