-- Doctor, the server's part: settings, sessions and snapshots that defeat rdq, tables and indexes that are not
-- kept well. It says less where the role may see less, and fails nowhere: not on a standby either.

create or replace function rdq._doctor_settings()
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'error', 'database', 'this server is a standby: it only reads, so nothing can be submitted, claimed or redriven here',
    'RDQ_DSN="host=first,second target_session_attrs=read-write"  # connects to the primary, whichever that is'
  where pg_is_in_recovery()
  union all
  select
    'error', 'database', 'the encoding of the database is ' || current_setting('server_encoding'),
    'create database rdq encoding ''UTF8'' template template0;  -- rdq stores texts of any language; move it there'
  where current_setting('server_encoding') <> 'UTF8'
  union all
  select
    case when s.name = 'default_transaction_read_only' then 'error' else 'warning' end, 'setting ' || s.name, b.finding,
    case s.source
      when 'database' then format('alter database %I reset %I;', current_database(), s.name)
      when 'user' then format('alter role %I reset %I;', session_user, s.name)
      when 'database user' then format('alter role %I in database %I reset %I;', session_user, current_database(), s.name)
      when 'session' then format('reset %I;', s.name)
      when 'client' then format('set %I = %L;  -- the options of this connection set it (PGOPTIONS, options=)', s.name, s.boot_val)
      else format('alter system set %I = %L;  -- then: select pg_reload_conf();', s.name, s.boot_val)
    end
  from pg_settings s
  cross join lateral rdq._bad_setting(s.name, current_setting(s.name)) b
  where b.finding is not null
$$;

comment on function rdq._doctor_settings() is 'What the server and this session are set to, where rdq cannot work well with it.';

create or replace function rdq._bad_setting(inout name text, value text, out finding text)
language sql stable
as $$
  select
    name,
    case
      when name = 'default_transaction_read_only' and value in ('on', 'true', 'yes', '1')
        then 'transactions only read: nothing can be submitted, claimed or redriven'
      when name = 'default_transaction_isolation' and value not in ('read committed', 'read uncommitted')
        then format('transactions are %s: concurrent claims then fail with serialization errors and have to be repeated', value)
      when name = 'synchronous_commit' and value in ('off', 'false', 'no', '0')
        then 'commits do not wait for the disk: a crash can lose a task that its producer was told is stored'
      when name in ('autovacuum', 'track_counts') and value in ('off', 'false', 'no', '0')
        then 'nothing cleans up after the tickets, which are deleted all day: every claim becomes slower'
      when name = 'statement_timeout' and rdq._timeout(value) < interval '5 seconds'
        then format('statements end after %s: a redrive, purge or tick of many may never get through', value)
      when name in ('idle_in_transaction_session_timeout', 'transaction_timeout') and rdq._timeout(value) < interval '1 minute'
        then format('transactions end after %s: so does a handler that works in the transaction of its completion', value)
      when name = 'idle_session_timeout' and rdq._timeout(value) < interval '1 minute'
        then format('sessions that wait end after %s: so does one that listens for work', value)
    end
$$;

comment on function rdq._bad_setting(text, text) is 'What a setting does to rdq, in words; null if it does no harm.';

create or replace function rdq._timeout(value text) returns interval
language sql stable
as $$
  select nullif(
    case
      when value ~ '^[0-9]+([.][0-9]+)?$' then value::double precision * interval '1 millisecond'
      when value ~ '^[0-9]+([.][0-9]+)?[[:space:]]*(us|ms|s|min|h|d)$' then value::interval
    end,
    interval '0'
  )
$$;

comment on function rdq._timeout(text) is 'A timeout as settings have it (milliseconds where it names no unit); null for none.';

create or replace function rdq._collation_has_changed() returns boolean
language sql stable
return (
  select coalesce(d.datcollversion <> pg_database_collation_actual_version(d.oid), false)
  from pg_database d
  where d.datname = current_database()
);

comment on function rdq._collation_has_changed() is
'Whether the database''s collation is of another version than when its indexes were built.';

create or replace function rdq._doctor_collation()
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'warning', 'database',
    'the system''s collation has another version than when the database was made: indexes over text may be out of order (rdq''s own names do not depend on it)',
    format('reindex database %1$I; alter database %1$I refresh collation version;', current_database())
  where rdq._collation_has_changed()
$$;

comment on function rdq._doctor_collation() is 'Whether an upgrade of the system has changed how texts sort.';

create or replace function rdq._doctor_locks(held_for interval default '1 minute')
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  -- Anybody who may connect can take an advisory lock. A queue is being dropped for an instant only.
  select
    'warning', 'session ' || l.pid,
    format('it holds the advisory lock of a queue alone (role %s): submits to that queue are slower, and it cannot be dropped',
      coalesce(rdq._one_line(a.usename), 'unknown')),
    format('select pg_terminate_backend(%s);  -- or end it where it runs', l.pid)
  from pg_locks l
  left join pg_stat_activity a on a.pid = l.pid
  where l.locktype = 'advisory' and l.classid = rdq._queue_lock_class()::oid and l.objsubid = 2
    and l.mode = 'ExclusiveLock' and l.granted and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and a.pid <> pg_backend_pid()
  union all
  select
    'warning', 'redrive ' || p.redrive_id,
    format('it waits for %s that another transaction has locked', rdq._counted(count(*), 'dead letter', 'dead letters')),
    'select pid, usename, state, xact_start, query from pg_stat_activity where xact_start is not null order by xact_start;  -- end the oldest'
  from rdq.redrive_passed p
  join rdq.redrive_run r on r.redrive_id = p.redrive_id
  where r.state = 'RUNNING' and r.began_at < statement_timestamp() - held_for
  group by p.redrive_id
$$;

comment on function rdq._doctor_locks(interval) is 'Locks that others hold for long, and that are in the way of rdq.';

create or replace function rdq._doctor_notices(usage double precision)
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'warning', 'notices',
    format('the queue of notices is full to %s %%: a session listens and does not read, since it is in a long transaction',
      round((usage * 100)::numeric)),
    'select pid, state, xact_start from pg_stat_activity where state like ''idle in transaction%'' order by xact_start;  -- end the oldest; a full queue refuses every submit'
  where usage > 0.25
$$;

comment on function rdq._doctor_notices(double precision) is 'Whether LISTEN and NOTIFY are about to fail, by pg_notification_queue_usage().';

-- What keeps removed tickets from being cleaned up

create or replace function rdq._doctor_sessions(
  sessions jsonb,
  held_for interval default '5 minutes',
  held_xids bigint default 1000000
)
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  -- Of other users' sessions a plain role sees little more than how old their snapshot is.
  select
    'warning', 'session ' || a.pid,
    format('%s%s: what was removed since then cannot be cleaned up',
      case when a.datid is null then 'a standby' else 'a transaction' end
        || coalesce(' of ' || rdq._one_line(nullif(s.name, '')), ''),
      coalesce(' has been open for ' || rdq._in_words(statement_timestamp() - a.began_at), format(' holds a snapshot that is %s transactions old', a.age))),
    case when a.datid is null
      then 'select pid, query, xact_start from pg_stat_activity order by xact_start;  -- on that standby: a long query there, by hot_standby_feedback'
      else format('select pg_terminate_backend(%s);  -- or end it where it runs', a.pid)
    end
  from (
    select a.pid, a.datid, coalesce(a.xact_start, g.began_at) as began_at, greatest(age(a.backend_xmin), age(a.backend_xid)) as age
    from pg_stat_activity a
    left join jsonb_to_recordset(sessions) g (pid integer, began_at timestamptz) on g.pid = a.pid
    where a.pid <> pg_backend_pid() and a.leader_pid is null
      -- Every other kind of process, such as autovacuum's, belongs to nobody; vacuum holds nothing back.
      and a.usesysid is not null
      and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
      and (a.datid is null or a.datname = current_database())
  ) a
  left join jsonb_to_recordset(sessions) s (pid integer, name text) on s.pid = a.pid
  where a.age is not null and (a.age > held_xids or a.began_at < statement_timestamp() - held_for)
$$;

comment on function rdq._doctor_sessions(jsonb, interval, bigint) is
'Sessions and standbys whose snapshot is older than that, or than so many transactions.';

create or replace function rdq._doctor_snapshots(held_for interval default '5 minutes', held_xids bigint default 1000000)
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'warning', 'prepared transaction ' || rdq._one_line(p.gid),
    format('it has waited for its end for %s: what was removed since then cannot be cleaned up, and its locks stay',
      rdq._in_words(statement_timestamp() - p.prepared)),
    format('rollback prepared %L;  -- or commit it, as whoever coordinates it says', p.gid)
  from pg_prepared_xacts p
  where p.database = current_database() and p.prepared < statement_timestamp() - held_for
  union all
  select
    'warning', 'replication slot ' || s.slot_name,
    format('%s, and holds a snapshot that is %s transactions old: what was removed since then cannot be cleaned up',
      case when s.active then 'it is in use' else 'nobody uses it' end, age(s.xmin)),
    case when s.active
      then 'select pid, query, xact_start from pg_stat_activity order by xact_start;  -- on its standby: a long query there, by hot_standby_feedback'
      else format('select pg_drop_replication_slot(%L);  -- if its standby will not come back', s.slot_name)
    end
  from pg_replication_slots s
  where age(s.xmin) > held_xids
$$;

comment on function rdq._doctor_snapshots(interval, bigint) is
'Prepared transactions older than that, and replication slots whose snapshot is older than so many transactions.';

-- Tables and indexes

create or replace function rdq._doctor_vacuum()
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  select
    'warning', 'table rdq.' || s.name, format('%s removed rows wait to be cleaned up, %s', s.dead_rows,
      coalesce('the last time was ' || rdq._in_words(statement_timestamp() - s.vacuumed_at) || ' ago', 'it was never done')),
    format('vacuum (analyze) rdq.%I;  -- if it often gets so far: more autovacuum_max_workers, or less autovacuum_naptime', s.name)
  from rdq._table_facts() s
  where s.dead_rows > greatest(100000, 3 * s.vacuum_after)
    and coalesce(s.vacuumed_at < statement_timestamp() - interval '5 minutes', true)
  union all
  select
    'warning', 'table rdq.' || s.name, 'autovacuum is switched off for it', format('alter table rdq.%I reset (autovacuum_enabled);', s.name)
  from rdq._table_facts() s
  where not s.autovacuum
  union all
  select
    'error', 'index rdq.' || c.relname, 'it is not valid, so nothing uses it: creating or rebuilding it failed',
    format('reindex index concurrently rdq.%I;', c.relname)
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = 'rdq'::regnamespace and not i.indisvalid
$$;

comment on function rdq._doctor_vacuum() is 'Tables that autovacuum does not keep up with, and indexes that are not valid.';

create or replace function rdq._doctor_bloat(least_bytes bigint default 67108864)
returns table (severity text, subject text, finding text, advice text)
language sql stable
as $$
  with width as materialized (
    select
      a.attrelid, a.attnum,
      coalesce((1 - s.null_frac) * s.avg_width, case when a.attlen > 0 then a.attlen else 32 end) as bytes
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_stats s on s.schemaname = 'rdq' and s.tablename = c.relname and s.attname = a.attname
    where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'r'
  ),
  relation as (
    select 'table' as kind, t.name, t.oid as table, null::smallint[] as columns, t.live_rows, pg_relation_size(t.oid) as bytes
    from rdq._table_facts() t
    where t.known
    union all
    select 'index', c.relname, t.oid, i.indkey::smallint[], t.live_rows, pg_relation_size(c.oid)
    from rdq._table_facts() t
    join pg_index i on i.indrelid = t.oid
    join pg_class c on c.oid = i.indexrelid
    where t.known
  )
  select
    'info', r.kind || ' rdq.' || r.name,
    format('it takes %s for at most about %s rows, four times what they need', pg_size_pretty(r.bytes), r.live_rows::bigint),
    case r.kind
      when 'index' then format('reindex index concurrently rdq.%I;', r.name)
      else format('vacuum (full, analyze) rdq.%I;  -- nobody can use the table meanwhile; or leave it: the space is used again', r.name)
    end
  from relation r
  where r.bytes > least_bytes
    and r.bytes > 4 * r.live_rows * (
      -- Headers, and what a B-tree leaves free.
      select case r.kind when 'table' then 36 + sum(w.bytes) else 24 + 1.4 * sum(w.bytes) end
      from width w
      where w.attrelid = r.table and (r.columns is null or w.attnum = any (r.columns))
    )
$$;

comment on function rdq._doctor_bloat(bigint) is 'Tables and indexes of more than so many bytes that could have a quarter of their size, by an estimate.';

create or replace function rdq._table_facts()
returns table (
  oid oid,
  name name,
  live_rows double precision,
  dead_rows bigint,
  vacuum_after double precision,
  vacuumed_at timestamptz,
  autovacuum boolean,
  known boolean
)
language sql stable
as $$
  select
    c.oid, c.relname, greatest(c.reltuples, s.n_live_tup), s.n_dead_tup,
    coalesce(o.threshold, current_setting('autovacuum_vacuum_threshold'))::double precision
      + coalesce(o.factor, current_setting('autovacuum_vacuum_scale_factor'))::double precision * greatest(c.reltuples, 0),
    greatest(s.last_vacuum, s.last_autovacuum), coalesce(o.enabled::boolean, true),
    -- Counters are lost in a crash.
    coalesce(s.last_vacuum, s.last_autovacuum, s.last_analyze, s.last_autoanalyze) is not null
  from pg_class c
  join pg_stat_all_tables s on s.relid = c.oid
  cross join lateral (
    select
      max(e.option_value) filter (where e.option_name = 'autovacuum_vacuum_threshold') as threshold,
      max(e.option_value) filter (where e.option_name = 'autovacuum_vacuum_scale_factor') as factor,
      max(e.option_value) filter (where e.option_name = 'autovacuum_enabled') as enabled
    from pg_options_to_table(c.reloptions) e
  ) o
  where c.relnamespace = 'rdq'::regnamespace and c.relkind = 'r'
$$;

comment on function rdq._table_facts() is 'What the server knows of each table: rows, rows to clean up, after how many autovacuum comes, when it last came.';
