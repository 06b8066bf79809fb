-- Dead letters: what could not be done, findable. One filter serves the list, the groups, the redrive and
-- the purge, so that what an operator sees is what an action touches. None of them reads a stack or a
-- payload: the ticket of a dead letter carries what a list shows.

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
  page text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select *
  from rdq._dead_letter_page(
    rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until),
    rdq._queue_patterns('viewer'), max_rows, after
  )
$$;

comment on function rdq.dead_letters(text, text, text, text, text, text, timestamptz, timestamptz, integer, text) is
'A page of the dead letters that match, newest first. error_type is a glob; since and until bound dead_at. Give the page of the last row as after to get the next page: each dead letter comes once, also while new ones arrive. Errors: RD002.';

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
  sample_message text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select *
  from rdq._dead_letter_groups(
    rdq._filter(queue, handler, error_type, error_class, dead_reason, fingerprint, since, until),
    rdq._queue_patterns('viewer'), max_rows
  )
$$;

comment on function rdq.dead_letter_groups(text, text, text, text, text, text, timestamptz, timestamptz, integer) is
'The dead letters that match, grouped by cause (fingerprint), the largest group first, with a sample of each. The filter is that of dead_letters(). Errors: RD002.';

create or replace function rdq.fingerprint(handler text, error_type text, message text) returns text
language sql stable
-- Quoted values first, then every word with a digit in it: numbers, times, addresses, UUIDs and other ids.
return left(encode(sha256(convert_to(
  concat(handler, E'\n', error_type, E'\n', regexp_replace(
    regexp_replace(
      left(message, 1000),
      '(^|[^[:alnum:]])(''[^'']*''|"[^"]*"|`[^`]*`)', '\1<value>', 'g'
    ),
    '[[:alnum:]_.:/+-]*[0-9][[:alnum:]_.:/+-]*', '<id>', 'g'
  )),
  'UTF8'
)), 'hex'), 16);

comment on function rdq.fingerprint(text, text, text) is
'What failures of one cause have in common, as 16 hexadecimal digits: handler, error type, and the message with its numbers, ids and quoted values masked.';

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
  if dead_reason not in ('EXHAUSTED', 'PERMANENT', 'AMBIGUOUS', 'DEADLINE', 'VANISHED', 'UNROUTABLE', 'CANCELLED') then
    perform rdq._refuse('RD002',
      format('dead_reason is unknown: %s', left(dead_reason, 60)),
      'The reasons are EXHAUSTED, PERMANENT, AMBIGUOUS, DEADLINE, VANISHED, UNROUTABLE and CANCELLED.');
  end if;
  return jsonb_strip_nulls(jsonb_build_object(
    'queue', queue, 'handler', handler, 'error_type', error_type, 'error_class', error_class,
    'dead_reason', dead_reason, 'fingerprint', fingerprint, 'since', since, 'until', until
  ));
end
$$;

comment on function rdq._filter(text, text, text, text, text, text, timestamptz, timestamptz) is
'A filter over dead letters, in the form in which it is kept; refuses (RD002) one that could never match, such as a misspelt class.';

create or replace function rdq._check_action_filter(filter jsonb) returns void
language plpgsql stable
as $$
begin
  if filter = '{}' then
    perform rdq._refuse('RD002',
      'the filter is empty', 'Name what you mean: at least the queue, or a time (since => ''-infinity'' is everything).');
  end if;
  if filter ? 'queue' then
    perform rdq._queue(filter ->> 'queue'), rdq._require('operator', filter ->> 'queue');
  end if;
end
$$;

comment on function rdq._check_action_filter(jsonb) is
'Refuses (RD001, RD002, RD007) a filter that is too little to act on, or names a queue in which the caller may not act.';

create or replace function rdq._dead_matching(filter jsonb, patterns text[]) returns setof rdq.dead
language sql stable
-- Inlined into its callers, which plan anew for each call (plan_cache_mode): a condition on a key that the
-- filter does not have falls away, and the others choose the index.
as $$
  select d.*
  from rdq.dead d
  where (filter ->> 'queue' is null or d.queue = filter ->> 'queue')
    and (filter ->> 'handler' is null or d.handler = filter ->> 'handler')
    and (filter ->> 'error_type' is null or d.error_type like rdq._like(filter ->> 'error_type'))
    and (filter ->> 'error_class' is null or d.error_class = filter ->> 'error_class')
    and (filter ->> 'dead_reason' is null or d.reason = filter ->> 'dead_reason')
    and (filter ->> 'fingerprint' is null or d.fingerprint = filter ->> 'fingerprint')
    and (filter ->> 'since' is null or d.dead_at >= (filter ->> 'since')::timestamptz)
    and (filter ->> 'until' is null or d.dead_at < (filter ->> 'until')::timestamptz)
    and (patterns is null or d.queue like any (patterns))
$$;

comment on function rdq._dead_matching(jsonb, text[]) is
'The dead letters that match a filter, in the queues of patterns; the one place that says what a filter means.';

create or replace view rdq._dead_letter as
select
  d.task_id, d.queue, d.handler, d.dead_at, d.reason as dead_reason, d.error_class, d.error_type, d.message,
  d.fingerprint, d.code_version,
  (select count(*) from rdq.attempt a where a.task_id = d.task_id) as attempts,
  d.life as redrive_count, t.created_at,
  (to_jsonb(d.dead_at) #>> '{}') || ' ' || d.task_id as page
from rdq.dead d
join rdq.task t on t.id = d.task_id;

comment on view rdq._dead_letter is 'A dead letter as people see it, without regard to who looks.';

create or replace function rdq._dead_letter_page(filter jsonb, patterns text[], max_rows integer, after text)
returns setof rdq._dead_letter
language plpgsql stable
set plan_cache_mode = force_custom_plan
-- By an index in the order of death, also with statistics of a table that was empty.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
  after_at timestamptz;
  after_id uuid;
begin
  perform rdq._check_count('max_rows', max_rows);
  begin
    after_at := split_part(after, ' ', 1)::timestamptz;
    after_id := split_part(after, ' ', 2)::uuid;
  exception when data_exception then
    perform rdq._refuse('RD002',
      format('after is not the end of a page: %s', left(after, 80)),
      'Give the column "page" of the last row of the page before.');
  end;
  return query
  select l.*
  from (
    select d.dead_at, d.task_id
    from rdq._dead_matching(filter, patterns) d
    where after is null or (d.dead_at, d.task_id) < (after_at, after_id)
    order by d.dead_at desc, d.task_id desc
    limit max_rows
  ) d
  cross join lateral (select l.* from rdq._dead_letter l where l.task_id = d.task_id limit 1) l
  order by d.dead_at desc, d.task_id desc;
end
$$;

comment on function rdq._dead_letter_page(jsonb, text[], integer, text) is 'dead_letters() for a filter and the queues of patterns.';

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
  sample_message text
)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
begin
  perform rdq._check_count('max_rows', max_rows);
  return query
  select g.*, s.message
  from (
    select
      d.fingerprint, min(d.handler), min(d.error_type), count(*) as size, min(d.dead_at), max(d.dead_at),
      array_agg(distinct d.queue), array_agg(distinct d.reason),
      array_agg(distinct d.error_class) filter (where d.error_class is not null),
      array_agg(distinct d.code_version) filter (where d.code_version is not null),
      max(d.task_id::text)::uuid as sample_id
    from rdq._dead_matching(filter, patterns) d
    group by d.fingerprint
    order by count(*) desc, d.fingerprint
    limit max_rows
  ) g
  left join rdq.dead s on s.task_id = g.sample_id
  order by g.size desc, g.fingerprint;
end
$$;

comment on function rdq._dead_letter_groups(jsonb, text[], integer) is 'dead_letter_groups() for a filter and the queues of patterns.';

create or replace view rdq.dead_letters with (security_barrier) as
select l.*
from rdq._dead_letter l
where (select rdq._queue_patterns('viewer')) is null
  or l.queue like any ((select rdq._queue_patterns('viewer'))::text[])
order by l.dead_at desc, l.task_id desc;

comment on view rdq.dead_letters is
'The dead letters of the queues that the caller may see, newest first: why each is dead, its last error, how often it was tried and redriven. rdq.history(task_id) has every attempt, rdq.envelope(task_id) the payload.';
