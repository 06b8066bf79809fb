-- Dead letters: what could not be done, findable. One filter serves the list, the groups, the redrive and
-- the purge, so that what an operator sees is what an action touches. None of them reads a stack or a
-- payload: the ticket of a dead letter carries what a list shows.
--
-- A page does not walk past what its filter leaves out, however rare the matches are:
--
--   queue, or none     walks dead_by_queue or dead_by_time from the newest
--   fingerprint        walks dead_by_fingerprint
--   anything else      looks at the newest. Where these do not fill the page, asks dead_by_cause what matches:
--                      few are read, of many the fingerprints are merged
--
-- One walk is left: to thousands of one class or one reason that all died long before the newest. It passes a
-- million in about a second, and an index in that order would cost every death more.
--
-- An index for each of handler, error_type, class and reason would be simpler, and cost every death four times
-- what dead_by_cause does (22 % more WAL instead of 6 %).

create or replace function rdq.dead_letters(
  queue text default null,
  handler text default null,
  error_type text default null,
  error_class text default null,
  dead_reason text default null,
  fingerprint text default null,
  since timestamptz default null,
  until timestamptz default null,
  max_rows integer default 100,
  after text default null
) returns table (
  task_id uuid,
  queue text,
  handler text,
  dead_at timestamptz,
  dead_reason text,
  error_class text,
  error_type text,
  message text,
  fingerprint text,
  code_version text,
  attempts bigint,
  redrive_count integer,
  created_at timestamptz,
  page text,
  redrive_id uuid
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select *
  from rdq._dead_letter_page(
    rdq._visible(rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until)),
    rdq._queue_patterns('viewer'), max_rows, after collate "C"
  )
$$;

comment on function rdq.dead_letters(text, text, text, text, text, text, timestamptz, timestamptz, integer, text) is
'A page of the dead letters that match, newest first. error_type is a glob; since and until bound dead_at. Give the page of the last row as after to get the next page: each dead letter comes once, also while new ones arrive. Errors: RD001, RD002, RD007.';

create or replace function rdq._filter(
  queue text,
  handler text,
  error_type text,
  error_class text,
  dead_reason text,
  fingerprint text,
  since timestamptz,
  until timestamptz
) returns jsonb
language plpgsql stable
as $$
begin
  perform rdq._check_class('error_class', error_class);
  if dead_reason collate "C" not in ('EXHAUSTED', 'PERMANENT', 'AMBIGUOUS', 'DEADLINE', 'VANISHED', 'UNROUTABLE', 'CANCELLED') then
    perform rdq._refuse('RD002',
      format('dead_reason is unknown: %s', left(dead_reason, 60)),
      'The reasons are EXHAUSTED, PERMANENT, AMBIGUOUS, DEADLINE, VANISHED, UNROUTABLE and CANCELLED.');
  end if;
  if fingerprint collate "C" !~ '^[0-9a-f]{16}$'
    and not exists (select from rdq.dead d where d.fingerprint = _filter.fingerprint collate "C")
  then
    perform rdq._refuse('RD002',
      format('fingerprint is not one: %s', left(fingerprint, 60)),
      'A fingerprint has 16 hexadecimal digits; rdq.dead_letter_groups shows them. Give all of them.');
  end if;
  if handler is not null then
    perform rdq._check_name('handler', handler);
  end if;
  if length(error_type) > 1000 then
    perform rdq._refuse('RD002', format('error_type has %s characters', length(error_type)), 'Give a glob of at most 1000.');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'queue', queue, 'handler', handler, 'error_type', error_type, 'error_class', error_class,
    'dead_reason', dead_reason, 'fingerprint', fingerprint, 'since', since, 'until', until
  ));
end
$$;

comment on function rdq._filter(text, text, text, text, text, text, timestamptz, timestamptz) is
'A filter over dead letters, in the form in which it is kept; refuses (RD002) one that could never match, such as a misspelt class.';

create or replace function rdq._visible(filter jsonb) returns jsonb
language plpgsql stable
as $$
begin
  if filter ? 'queue' then
    perform rdq._require('viewer', filter ->> 'queue'), rdq._queue(filter ->> 'queue');
  end if;
  return filter;
end
$$;

comment on function rdq._visible(jsonb) is
'The filter of a look; refuses a queue that does not exist (RD001), since "none" would read as "all is well", or into which the caller may not look (RD007).';

create or replace function rdq._check_action_filter(filter jsonb) returns void
language plpgsql stable
as $$
begin
  if filter = '{}' then
    perform rdq._refuse('RD002',
      'the filter is empty', 'Name what you mean: at least the queue, or a time (since => ''-infinity'' is everything).');
  end if;
  if filter ? 'queue' then
    perform rdq._require('operator', filter ->> 'queue'), rdq._queue(filter ->> 'queue');
  end if;
end
$$;

comment on function rdq._check_action_filter(jsonb) is
'Refuses (RD001, RD002, RD007) a filter that is too little to act on, or names a queue in which the caller may not act.';

create or replace function rdq._matches(letter rdq.dead, filter jsonb, patterns text[]) returns boolean
language sql stable
-- Inlined. Where a plan is made for the values (plan_cache_mode), a condition on a key that the filter does
-- not have falls away, and the others choose the index.
return (filter ->> 'queue' is null or letter.queue = filter ->> 'queue')
  and (filter ->> 'handler' is null or letter.handler = filter ->> 'handler')
  and (filter ->> 'error_type' is null or letter.error_type like rdq._like(filter ->> 'error_type'))
  and (filter ->> 'error_class' is null or letter.error_class = filter ->> 'error_class')
  and (filter ->> 'dead_reason' is null or letter.reason = filter ->> 'dead_reason')
  and (filter ->> 'fingerprint' is null or letter.fingerprint = filter ->> 'fingerprint')
  and (filter ->> 'since' is null or letter.dead_at >= (filter ->> 'since')::timestamptz)
  and (filter ->> 'until' is null or letter.dead_at < (filter ->> 'until')::timestamptz)
  and (patterns is null or letter.queue like any (patterns));

comment on function rdq._matches(rdq.dead, jsonb, text[]) is
'Whether a dead letter matches a filter, in the queues of patterns; the one place that says what a filter means.';

create or replace function rdq._dead_matching(filter jsonb, patterns text[]) returns setof rdq.dead
language sql stable
as $$
  select d.* from rdq.dead d where rdq._matches(d, filter, patterns)
$$;

comment on function rdq._dead_matching(jsonb, text[]) is 'The dead letters that match a filter, in the queues of patterns.';

create or replace view rdq._dead_letter as
select
  d.task_id, d.queue, d.handler, d.dead_at, d.reason as dead_reason, d.error_class, d.error_type, d.message,
  d.fingerprint, d.code_version,
  (select count(*) from rdq.attempt a where a.task_id = d.task_id) as attempts,
  d.life as redrive_count, t.created_at,
  (to_jsonb(d.dead_at) #>> '{}') || ' ' || d.task_id as page, d.redrive_id
from rdq.dead d
-- The limit keeps it a probe for each, with whatever statistics the caller has it planned.
cross join lateral (select t.created_at from rdq.task t where t.id = d.task_id limit 1) t;

comment on view rdq._dead_letter is 'A dead letter as people see it, without regard to who looks.';

create or replace function rdq._dead_letter_page(filter jsonb, patterns text[], max_rows integer, after text)
returns setof rdq._dead_letter
language plpgsql stable
set enable_seqscan = off
set jit = off
as $$
declare
  after_at timestamptz;
  after_id uuid;
begin
  perform rdq._check_count('max_rows', max_rows);
  begin
    after_at := split_part(after collate "C", ' ', 1)::timestamptz;
    after_id := split_part(after collate "C", ' ', 2)::uuid;
  exception when data_exception then
    perform rdq._refuse('RD002',
      format('after is not the end of a page: %s', left(after, 80)),
      'Give the column "page" of the last row of the page before.');
  end;
  return query
  select l.*
  from unnest(rdq._newest_matching(filter, patterns, max_rows, after_at, after_id)) with ordinality p (task_id, place)
  cross join lateral (select l.* from rdq._dead_letter l where l.task_id = p.task_id limit 1) l
  order by p.place;
end
$$;

comment on function rdq._dead_letter_page(jsonb, text[], integer, text) is 'dead_letters() for a filter and the queues of patterns.';

create or replace function rdq._newest_matching(
  filter jsonb,
  patterns text[],
  max_rows integer,
  after_at timestamptz,
  after_id uuid
) returns uuid[]
language plpgsql stable
as $$
declare
  rest constant jsonb := filter - '{queue,since,until}'::text[];
  until_at constant timestamptz := coalesce((filter ->> 'until')::timestamptz, 'infinity');
  since_at constant timestamptz := coalesce((filter ->> 'since')::timestamptz, '-infinity');
  before_at constant timestamptz := least(after_at, until_at);
  before_id constant uuid := case when before_at < until_at then after_id else '00000000-0000-0000-0000-000000000000' end;
  queues constant text[] := rdq._queues_within(filter, patterns);
  fingerprints text[] := array[filter ->> 'fingerprint'];
  causes text[];
  few constant integer := 1000 + 10 * max_rows;
  found_ids uuid[];
  size bigint;
  looks bigint;
begin
  if rest = '{}' then
    return rdq._newest(null, queues, since_at, before_at, before_id, max_rows, filter, patterns, max_rows);
  elsif rest - 'fingerprint' = '{}' and queues is null then
    return rdq._newest(fingerprints, null, since_at, before_at, before_id, max_rows, filter, patterns, max_rows);
  end if;
  found_ids := rdq._newest(
    case when filter ? 'fingerprint' then fingerprints end, case when filter ? 'queue' then queues end,
    since_at, before_at, before_id, few, filter, patterns, max_rows
  );
  if cardinality(found_ids) = max_rows then
    return found_ids;
  end if;
  if filter ? 'since' then
    looks := rdq._deaths_within(queues, since_at, before_at);
    if looks <= few then
      -- It has looked at all of them.
      return found_ids;
    end if;
  end if;
  select
    coalesce(sum(c.size), 0), array_agg(distinct c.fingerprint),
    array_agg(distinct array[c.queue, c.fingerprint, c.reason])
  into size, fingerprints, causes
  from rdq._causes(filter - '{since,until}'::text[], patterns) c;
  if size <= few then
    return rdq._newest_of_few(causes, before_at, before_id, filter, patterns, max_rows);
  elsif not filter ?| '{handler,error_type,fingerprint}' then
    fingerprints := null;
  end if;
  return rdq._newest(
    fingerprints, queues, since_at, before_at, before_id, least(looks, 2147483647)::integer, filter, patterns, max_rows
  );
end
$$;

comment on function rdq._newest_matching(jsonb, text[], integer, timestamptz, uuid) is
'The newest dead letters that match, at most max_rows, older than the end of the page before; newest first.';

create or replace function rdq._deaths_within(queues text[], since_at timestamptz, before_at timestamptz) returns bigint
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set jit = off
as $$
begin
  return (
    select count(*)
    from rdq.dead d
    where (queues is null or d.queue = any (queues)) and d.dead_at >= since_at and d.dead_at <= before_at
  );
end
$$;

comment on function rdq._deaths_within(text[], timestamptz, timestamptz) is
'How many dead letters of queues (null: all) died between two times: more than so many need not be looked at.';

create or replace function rdq._queues_within(filter jsonb, patterns text[]) returns text[]
language sql stable
return case
  when filter ? 'queue' then array(
    select filter ->> 'queue' where rdq._permitted(filter ->> 'queue', patterns)
  )
  when patterns is null or '%' = any (patterns) then null
  else array(select q.queue from rdq.queue q where q.queue like any (patterns))
end;

comment on function rdq._queues_within(jsonb, text[]) is
'The queues whose dead letters a filter and patterns can match; null where that is all of them.';

create or replace function rdq._newest(
  fingerprints text[],
  queues text[],
  since_at timestamptz,
  before_at timestamptz,
  before_id uuid,
  looks integer,
  filter jsonb,
  patterns text[],
  max_rows integer
) returns uuid[]
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
begin
  if fingerprints is not null then
    -- A page has the newest of at most so many fingerprints as it has rows.
    if cardinality(fingerprints) > max_rows then
      fingerprints := array(
        select f.fingerprint
        from unnest(fingerprints) f (fingerprint)
        cross join lateral (
          select d.dead_at, d.task_id
          from rdq._newest_of_fingerprint(f.fingerprint, since_at, before_at, before_id, looks) d
          where rdq._matches(d, filter, patterns)
          order by d.fingerprint desc, d.dead_at desc, d.task_id desc
          limit 1
        ) d
        order by d.dead_at desc, d.task_id desc
        limit max_rows
      );
    end if;
    return array(
      select d.task_id
      from unnest(fingerprints) f (fingerprint)
      cross join lateral (
        select d.dead_at, d.task_id
        from rdq._newest_of_fingerprint(f.fingerprint, since_at, before_at, before_id, looks) d
        where rdq._matches(d, filter, patterns)
        order by d.fingerprint desc, d.dead_at desc, d.task_id desc
        limit max_rows
      ) d
      order by d.dead_at desc, d.task_id desc
      limit max_rows
    );
  elsif queues is not null then
    return array(
      select d.task_id
      from unnest(queues) q (queue)
      cross join lateral (
        select d.dead_at, d.task_id
        from rdq._newest_of_queue(q.queue, since_at, before_at, before_id, looks) d
        where rdq._matches(d, filter, patterns)
        order by d.queue desc, d.dead_at desc, d.task_id desc
        limit max_rows
      ) d
      order by d.dead_at desc, d.task_id desc
      limit max_rows
    );
  end if;
  return array(
    select d.task_id
    from (
      select d.*
      from rdq.dead d
      where (d.dead_at, d.task_id) < (before_at, before_id) and d.dead_at >= since_at
      order by d.dead_at desc, d.task_id desc
      limit looks
    ) d
    where rdq._matches(d, filter, patterns)
    order by d.dead_at desc, d.task_id desc
    limit max_rows
  );
end
$$;

comment on function rdq._newest(text[], text[], timestamptz, timestamptz, uuid, integer, jsonb, text[], integer) is
'The newest dead letters that match, newest first: of some fingerprints, else of some queues, else of all. Each walk ends after so many looks, if any are given.';

create or replace function rdq._newest_of_fingerprint(
  fingerprint text,
  since_at timestamptz,
  before_at timestamptz,
  before_id uuid,
  looks integer
) returns setof rdq.dead
language sql stable
-- Inlined. Written without an equality, so that dead_by_fingerprint is the only index with this order. since_at
-- is asked after the walk: within, it would not end it.
as $$
  select d.*
  from (
    select d.*
    from rdq.dead d
    where (d.fingerprint, d.dead_at, d.task_id) < (_newest_of_fingerprint.fingerprint, before_at, before_id)
      and d.fingerprint >= _newest_of_fingerprint.fingerprint
    order by d.fingerprint desc, d.dead_at desc, d.task_id desc
    limit looks
  ) d
  where d.dead_at >= since_at
$$;

comment on function rdq._newest_of_fingerprint(text, timestamptz, timestamptz, uuid, integer) is
'The dead letters of a fingerprint from a time until before another, newest first.';

create or replace function rdq._newest_of_queue(
  queue text,
  since_at timestamptz,
  before_at timestamptz,
  before_id uuid,
  looks integer
) returns setof rdq.dead
language sql stable
-- Inlined; as above, for dead_by_queue.
as $$
  select d.*
  from (
    select d.*
    from rdq.dead d
    where (d.queue, d.dead_at, d.task_id) < (_newest_of_queue.queue, before_at, before_id)
      and d.queue >= _newest_of_queue.queue
    order by d.queue desc, d.dead_at desc, d.task_id desc
    limit looks
  ) d
  where d.dead_at >= since_at
$$;

comment on function rdq._newest_of_queue(text, timestamptz, timestamptz, uuid, integer) is
'The dead letters of a queue from a time until before another, newest first.';

create or replace function rdq._newest_of_few(
  causes text[],
  before_at timestamptz,
  before_id uuid,
  filter jsonb,
  patterns text[],
  max_rows integer
) returns uuid[]
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_incremental_sort = off
set jit = off
as $$
begin
  return array(
    select d.task_id
    from generate_subscripts(causes, 1) c (place)
    cross join lateral rdq._dead_of_cause(
      causes[c.place][1], causes[c.place][2], causes[c.place][3], filter, patterns
    ) d
    where (d.dead_at, d.task_id) < (before_at, before_id)
    order by d.dead_at desc, d.task_id desc
    limit max_rows
  );
end
$$;

comment on function rdq._newest_of_few(text[], timestamptz, uuid, jsonb, text[], integer) is
'The newest dead letters that match, newest first, where so few match that all can be read: causes are their queues, fingerprints and reasons.';

create or replace view rdq.dead_letters with (security_barrier) as
select l.*
from rdq._dead_letter l
where (select rdq._queue_patterns('viewer')) is null
  or l.queue like any ((select rdq._queue_patterns('viewer'))::text[])
order by l.dead_at desc, l.task_id desc;

comment on view rdq.dead_letters is
'The dead letters of the queues that the caller may see, newest first: why each is dead, its last error, how often it was tried and redriven. rdq.history(task_id) has every attempt, rdq.envelope(task_id) the payload.';
