-- Causes: what failed, since when, with which code version. Dead letters of one cause share a fingerprint;
-- the groups count them, the timeline shows when each died. Neither reads a stack or a payload.
--
-- The groups count from dead_by_cause alone, and probe dead_by_fingerprint for the first and the last of
-- each group that they show. Of a million dead letters with 500 fingerprints that touches 2,200 pages and
-- takes 0.3 s; one look at every row touched 25,000, sorted on disk and took ten times as long.

create or replace function rdq.dead_letter_groups(
  queue text default null,
  handler text default null,
  error_type text default null,
  error_class text default null,
  dead_reason text default null,
  fingerprint text default null,
  since timestamptz default null,
  until timestamptz default null,
  max_rows integer default 100
) returns table (
  fingerprint text,
  handler text,
  error_type text,
  count bigint,
  first_dead_at timestamptz,
  last_dead_at timestamptz,
  queues text[],
  dead_reasons text[],
  error_classes text[],
  code_versions text[],
  sample_task_id uuid,
  sample_message text,
  share double precision,
  growing boolean
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select *
  from rdq._dead_letter_groups(
    rdq._visible(rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until)),
    rdq._queue_patterns('viewer'), max_rows
  )
$$;

comment on function rdq.dead_letter_groups(text, text, text, text, text, text, timestamptz, timestamptz, integer) is
'The dead letters that match, grouped by cause (fingerprint), the largest group first. share is that of all that match, from 0 to 1; growing says that one died in the last five minutes; the sample is the last that died. The filter is that of dead_letters(). Errors: RD001, RD002, RD007.';

create or replace function rdq.dead_letter_timeline(
  queue text default null,
  handler text default null,
  error_type text default null,
  error_class text default null,
  dead_reason text default null,
  fingerprint text default null,
  since timestamptz default null,
  until timestamptz default null,
  bucket interval default '1 hour',
  max_rows integer default 1000
) returns table (
  bucket_at timestamptz,
  fingerprint text,
  handler text,
  error_type text,
  code_version text,
  count bigint
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select *
  from rdq._dead_letter_timeline(
    rdq._visible(rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until)),
    rdq._queue_patterns('viewer'), bucket, max_rows
  )
$$;

comment on function rdq.dead_letter_timeline(text, text, text, text, text, text, timestamptz, timestamptz, interval, integer) is
'When the dead letters that match died, of which cause and with which code version, the newest bucket first, in it the largest count: a deploy is seen as a code_version that begins. A bucket is 1, 2, 5, 10, 15, 20 or 30 minutes, 1, 2, 3, 4, 6, 8 or 12 hours, or a day, counted from midnight UTC; bucket_at is its beginning. The filter is that of dead_letters(); without since it is the last 24 hours, or the last 7 days where the bucket is longer than an hour. Errors: RD001, RD002, RD007.';

create or replace function rdq._word_characters() returns text
language sql immutable parallel safe
-- Beyond ASCII all but the blocks of Unicode that hold punctuation and symbols.
return E'0-9A-Za-z\\u00c0-\\u1fff\\u2c00-\\u2dff\\u3040-\\U0010ffff';

comment on function rdq._word_characters() is
'Letters and digits, for a bracket expression. The locale of the database has no say: the same failure has the same fingerprint everywhere.';

create or replace function rdq.fingerprint(handler text, error_type text, message text) returns text
language sql stable
-- Quoted values first, then every word with a digit in it: numbers, times, addresses, UUIDs and other ids.
return left(encode(sha256(convert_to(
  concat(handler, E'\n', error_type, E'\n', regexp_replace(
    regexp_replace(
      left(message, 1000) collate "C",
      '(^|[^' || rdq._word_characters() || '])(''[^'']*''|"[^"]*"|`[^`]*`)', E'\\1<value>', 'g'
    ),
    '[' || rdq._word_characters() || '_.:/+-]*[0-9][' || rdq._word_characters() || '_.:/+-]*', '<id>', 'g'
  )),
  'UTF8'
)), 'hex'), 16);

comment on function rdq.fingerprint(text, text, text) is
'What failures of one cause have in common, as 16 hexadecimal digits: handler, error type, and the message with its numbers, ids and quoted values masked.';

create or replace function rdq._dead_letter_groups(filter jsonb, patterns text[], max_rows integer)
returns table (
  fingerprint text,
  handler text,
  error_type text,
  count bigint,
  first_dead_at timestamptz,
  last_dead_at timestamptz,
  queues text[],
  dead_reasons text[],
  error_classes text[],
  code_versions text[],
  sample_task_id uuid,
  sample_message text,
  share double precision,
  growing boolean
)
language plpgsql stable
as $$
begin
  perform rdq._check_count('max_rows', max_rows);
  filter := rdq._without_idle_bounds(filter);
  return query
  with cause as materialized (
    select c.* from rdq._causes(filter, patterns) c
  ),
  biggest as materialized (
    select c.fingerprint, sum(c.size)::bigint as size, sum(c.size) / sum(sum(c.size)) over () as share
    from cause c
    group by c.fingerprint
    order by sum(c.size) desc, c.fingerprint
    limit max_rows
  ),
  grouped as (
    select
      b.fingerprint, min(c.handler) as handler, min(c.error_type) as error_type, b.size, b.share,
      array_agg(distinct c.queue) as queues, array_agg(distinct c.reason) as reasons,
      array_agg(distinct c.error_class) filter (where c.error_class is not null) as classes,
      array_agg(distinct c.code_version) filter (where c.code_version is not null) as versions
    from biggest b
    join cause c on c.fingerprint = b.fingerprint
    group by b.fingerprint, b.size, b.share
  )
  select
    g.fingerprint, g.handler, g.error_type, g.size, e.first_at, e.last_at, g.queues, g.reasons, g.classes, g.versions,
    e.last_id, e.last_message, g.share::double precision, e.last_at > clock_timestamp() - interval '5 minutes'
  from grouped g
  cross join lateral rdq._ends(g.fingerprint, g.queues, g.reasons, g.size, filter, patterns) e
  order by g.size desc, g.fingerprint;
end
$$;

comment on function rdq._dead_letter_groups(jsonb, text[], integer) is 'dead_letter_groups() for a filter and the queues of patterns.';

create or replace function rdq._without_idle_bounds(filter jsonb) returns jsonb
language plpgsql stable
set enable_seqscan = off
set jit = off
as $$
begin
  return filter - array(
    select 'since'
    where (filter ->> 'since')::timestamptz <= (
      select d.dead_at from rdq.dead d order by d.dead_at, d.task_id limit 1
    )
    union all
    select 'until'
    where (filter ->> 'until')::timestamptz > (
      select d.dead_at from rdq.dead d order by d.dead_at desc, d.task_id desc limit 1
    )
  );
end
$$;

comment on function rdq._without_idle_bounds(jsonb) is
'A filter without the bounds of time that exclude nothing, so that less has to be read.';

create or replace function rdq._causes(filter jsonb, patterns text[])
returns table (
  queue text,
  fingerprint text,
  reason text,
  error_class text,
  code_version text,
  handler text,
  error_type text,
  size bigint
)
language sql stable
as $$
  with choice as materialized (
    -- An entry whose page vacuum has not seen since costs a look into the table. Where that would be most of
    -- them, one walk through the table is cheaper: of a million that no vacuum has seen it reads 30,000 pages
    -- instead of a million, in half the time. Not where an equality that no other index has may leave few.
    select filter ?| '{since,until}' or (
      not filter ?| '{handler,error_class,dead_reason}'
      and c.relallvisible < 0.9 * pg_relation_size(c.oid) / current_setting('block_size')::integer
    ) as walk
    from pg_class c
    where c.oid = 'rdq.dead'::regclass
  )
  select c.* from choice cross join lateral rdq._causes_walked(filter, patterns) c where choice.walk
  union all
  select c.* from choice cross join lateral rdq._causes_counted(filter, patterns) c where not choice.walk
$$;

comment on function rdq._causes(jsonb, text[]) is
'How many dead letters that match there are of each queue, fingerprint, reason, class, code version, handler and error type.';

create or replace function rdq._causes_counted(filter jsonb, patterns text[])
returns table (
  queue text,
  fingerprint text,
  reason text,
  error_class text,
  code_version text,
  handler text,
  error_type text,
  size bigint
)
language plpgsql stable
set plan_cache_mode = force_custom_plan
-- From dead_by_cause alone, the only index that has all of these columns.
set enable_seqscan = off
set enable_indexscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  queues constant text[] := rdq._queues_within(filter, patterns);
begin
  return query
  select d.queue, d.fingerprint, d.reason, d.error_class, d.code_version, d.handler, d.error_type, count(*)
  from rdq._dead_matching(filter, null) d
  where queues is null or d.queue = any (queues)
  group by 1, 2, 3, 4, 5, 6, 7;
end
$$;

comment on function rdq._causes_counted(jsonb, text[]) is '_causes() for a filter without times, from an index alone.';

create or replace function rdq._causes_walked(filter jsonb, patterns text[])
returns table (
  queue text,
  fingerprint text,
  reason text,
  error_class text,
  code_version text,
  handler text,
  error_type text,
  size bigint
)
language plpgsql stable
set plan_cache_mode = force_custom_plan
-- By an index in the order of death, which reads the time asked for and no more.
set enable_seqscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
begin
  return query
  select d.queue, d.fingerprint, d.reason, d.error_class, d.code_version, d.handler, d.error_type, count(*)
  from (
    select d.* from rdq._dead_matching(filter, patterns) d order by d.dead_at, d.task_id offset 0
  ) d
  group by 1, 2, 3, 4, 5, 6, 7;
end
$$;

comment on function rdq._causes_walked(jsonb, text[]) is '_causes() from the dead letters themselves, in the order of death.';

create or replace function rdq._ends(
  fingerprint text,
  queues text[],
  reasons text[],
  size bigint,
  filter jsonb,
  patterns text[],
  out first_at timestamptz,
  out last_at timestamptz,
  out last_id uuid,
  out last_message text
)
language plpgsql stable
-- Called for each group that is shown: planned once.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  since_at constant timestamptz := coalesce((filter ->> 'since')::timestamptz, '-infinity');
  before_at constant timestamptz := coalesce((filter ->> 'until')::timestamptz, 'infinity');
begin
  -- A few that may be hidden among many others of the fingerprint, in other queues or with other reasons,
  -- are read; otherwise the first and the last are close to the ends.
  if size <= 1000 and (patterns is not null or filter ?| '{queue,error_class,dead_reason}') then
    select min(d.dead_at), max(d.dead_at), (array_agg(d.task_id order by d.dead_at desc, d.task_id desc))[1]
    into first_at, last_at, last_id
    from unnest(queues) q (queue)
    cross join unnest(reasons) r (reason)
    cross join lateral rdq._dead_of_cause(q.queue, _ends.fingerprint, r.reason, filter, patterns) d;
  else
    select d.dead_at into first_at
    from rdq.dead d
    where (d.fingerprint, d.dead_at) >= (_ends.fingerprint, since_at)
      and (d.fingerprint, d.dead_at) < (_ends.fingerprint, before_at)
      and rdq._matches(d, filter, patterns)
    order by d.fingerprint, d.dead_at, d.task_id
    limit 1;
    select d.dead_at, d.task_id into last_at, last_id
    from rdq._newest_of_fingerprint(
      _ends.fingerprint, since_at, before_at, '00000000-0000-0000-0000-000000000000', null
    ) d
    where rdq._matches(d, filter, patterns)
    order by d.fingerprint desc, d.dead_at desc, d.task_id desc
    limit 1;
  end if;
  last_message := (select d.message from rdq.dead d where d.task_id = last_id);
end
$$;

comment on function rdq._ends(text, text[], text[], bigint, jsonb, text[]) is
'When the first and the last dead letter of a group died that match, and which one is the last.';

create or replace function rdq._dead_of_cause(queue text, fingerprint text, reason text, filter jsonb, patterns text[])
returns setof rdq.dead
language sql stable
-- Inlined. The order is that of dead_by_cause, so that no other index will do.
as $$
  select d.*
  from rdq.dead d
  where d.queue = _dead_of_cause.queue
    and d.fingerprint = _dead_of_cause.fingerprint
    and d.reason = _dead_of_cause.reason
    and rdq._matches(d, filter, patterns)
  order by d.error_class, d.code_version, d.handler, d.error_type
  offset 0
$$;

comment on function rdq._dead_of_cause(text, text, text, jsonb, text[]) is
'The dead letters of a queue, a fingerprint and a reason that match.';

create or replace function rdq._dead_letter_timeline(filter jsonb, patterns text[], bucket interval, max_rows integer)
returns table (
  bucket_at timestamptz,
  fingerprint text,
  handler text,
  error_type text,
  code_version text,
  count bigint
)
language plpgsql stable
set plan_cache_mode = force_custom_plan
-- By an index in the order of death, which reads the time asked for and no more.
set enable_seqscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  midnight constant timestamptz := '2000-01-01 00:00:00+00';
begin
  perform rdq._check_count('max_rows', max_rows);
  perform rdq._check_bucket(bucket);
  filter := jsonb_build_object('since', date_bin(
    bucket, clock_timestamp() - case when bucket > interval '1 hour' then interval '7 days' else interval '1 day' end, midnight
  )) || filter;
  return query
  select
    date_bin(bucket, d.dead_at, midnight), d.fingerprint, d.handler, d.error_type, d.code_version, count(*)
  from (
    select d.* from rdq._dead_matching(filter, patterns) d order by d.dead_at, d.task_id offset 0
  ) d
  group by 1, 2, 3, 4, 5
  order by 1 desc, 6 desc, 2, 3, 4, 5
  limit max_rows;
end
$$;

comment on function rdq._dead_letter_timeline(jsonb, text[], interval, integer) is
'dead_letter_timeline() for a filter and the queues of patterns.';

create or replace function rdq._check_bucket(bucket interval) returns void
language plpgsql immutable
as $$
declare
  known constant interval[] :=
    '{1 min,2 min,5 min,10 min,15 min,20 min,30 min,1 hour,2 hours,3 hours,4 hours,6 hours,8 hours,12 hours,1 day}';
begin
  if bucket is null or bucket <> all (known) then
    perform rdq._refuse('RD002',
      format('bucket is %s', coalesce(left(bucket::text, 60), 'null')),
      'Give 1, 2, 5, 10, 15, 20 or 30 minutes, 1, 2, 3, 4, 6, 8 or 12 hours, or 1 day.');
  end if;
end
$$;

comment on function rdq._check_bucket(interval) is 'Refuses (RD002) a bucket into which a day cannot be divided evenly.';
