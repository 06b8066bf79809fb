-- Names are compared and sorted byte by byte, whatever the collation of the database is, was, or becomes after an
-- upgrade of the system's libraries: every name of a queue, a handler, a runner, every class, reason and fingerprint
-- is collate "C". Texts that people write (messages, reasons) keep the collation of the database.
--
-- The views, and the functions that were parsed with these columns, are dropped first. All of them are loaded again
-- right after the steps. Indexes over the columns are built anew, tables are not rewritten.

do $$
declare
  change record;
begin
  for change in
    with recursive identifier as materialized (
      select a.attrelid::regclass as relation, a.attname as name, a.atttypid::regtype as type
      from (
        values
          ('rdq.queue'::regclass, '{queue,on_version_mismatch}'::name[]),
          ('rdq.task'::regclass, '{queue,handler,handler_version,content_type,dedupe_key}'::name[]),
          ('rdq.due'::regclass, '{queue}'::name[]),
          ('rdq.lease'::regclass, '{queue,runner,code_version}'::name[]),
          ('rdq.low_water'::regclass, '{queue}'::name[]),
          ('rdq.dead'::regclass, '{queue,handler,reason,error_class,error_type,fingerprint,code_version}'::name[]),
          ('rdq.attempt'::regclass, '{queue,outcome,error_class,error_type,runner,code_version,late_outcome}'::name[]),
          ('rdq.dedupe'::regclass, '{queue}'::name[]),
          ('rdq.redrive_run'::regclass, '{state,phase,queues}'::name[]),
          ('rdq.redriven'::regclass, '{outcome}'::name[]),
          ('rdq.audit'::regclass, '{action,queue}'::name[]),
          ('rdq.access'::regclass, '{capability,queues}'::name[]),
          ('rdq.endpoint'::regclass, '{queue,handler,url,secret}'::name[]),
          ('rdq.runner'::regclass, '{runner,host,version,code_version,queues}'::name[])
      ) t (relation, names)
      join pg_attribute a on a.attrelid = t.relation and a.attname = any (t.names)
      where a.attcollation <> '"C"'::regcollation
    ),
    of_column as (
      select d.classid, d.objid
      from pg_depend d
      join pg_class c on c.oid = d.refobjid and c.relnamespace = 'rdq'::regnamespace
      where d.refclassid = 'pg_class'::regclass and d.classid = 'pg_proc'::regclass
      union
      select d.classid, d.objid
      from of_column o
      join pg_depend d on d.refclassid = o.classid and d.refobjid = o.objid and d.classid = 'pg_proc'::regclass
    ),
    of_view as (
      select distinct d.objid
      from pg_depend d
      join pg_type t on t.oid = d.refobjid
      join pg_class c on c.oid = t.typrelid and c.relkind = 'v' and c.relnamespace = 'rdq'::regnamespace
      where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_type'::regclass
    )
    select 1 as place, format('drop function %s', string_agg(v.objid::regprocedure::text, ', ')) as command
    from of_view v
    having count(*) > 0 and exists (select from identifier)
    union all
    select 2, format('drop view %s', string_agg(c.oid::regclass::text, ', '))
    from pg_class c
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'v'
    having count(*) > 0 and exists (select from identifier)
    union all
    select 3, format('drop function %s', string_agg(o.objid::regprocedure::text, ', '))
    from of_column o
    where o.objid not in (select v.objid from of_view v)
    having count(*) > 0 and exists (select from identifier)
    union all
    select 4, format('alter table %s %s', i.relation,
      string_agg(format('alter column %I type %s collate "C"', i.name, i.type), ', '))
    from identifier i
    group by i.relation
    order by place
  loop
    execute change.command;
  end loop;
end
$$;
