-- Compression: PostgreSQL compresses what is long in rows of more than 2 kB, and does so with lz4 where it was built
-- with that. Against pglz, its default: 0.76 of the time of a submit of 5 kB of JSON, 0.9 of a claim of it, 0.85 and
-- 0.74 of the report of a failure with a stack of 2 and of 4 kB, for 5 to 15 % more bytes. A column for which somebody
-- has chosen a method keeps it. Not a step of ../migrations: the next server may be built with it.

do $$
declare
  long record;
begin
  for long in
    select c.relname as relation, a.attname as name
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid
    where a.attcompression = ''
      and (a.attrelid = 'rdq.task'::regclass and a.attname in ('payload', 'headers')
        or a.attrelid = 'rdq.attempt'::regclass and a.attname in ('message', 'stack', 'detail'))
      and 'lz4' = any ((
        select s.enumvals from pg_settings s where s.name = 'default_toast_compression'
      )::text[])
  loop
    execute format('alter table rdq.%I alter column %I set compression lz4', long.relation, long.name);
  end loop;
end
$$;
