-- Policy: every decision about a failure, as pure functions of their arguments. What class it has, how
-- long to wait, whether the task is dead. They hold no state, so pgTAP tests them as tables of values,
-- and none of them can raise: recording a failure must never be the thing that fails (rule 10).

create or replace function rdq._classify(explicit text, error_type text, rules jsonb) returns text
language plpgsql immutable parallel safe
as $$
begin
  if explicit is not null then
    return explicit;
  end if;
  for place in 0 .. jsonb_array_length(rules) - 1 loop
    if coalesce(error_type, '') like rdq._like(rules -> place ->> 'match') then
      return rules -> place ->> 'class';
    end if;
  end loop;
  return 'AMBIGUOUS';
end
$$;

comment on function rdq._classify(text, text, jsonb) is
'The class of an error: the worker''s word, else the first of the queue''s error_rules whose glob matches the type, else AMBIGUOUS.';

create or replace function rdq._delay(
  attempt integer,
  backoff_base interval,
  backoff_factor double precision,
  backoff_cap interval,
  ladder interval[]
) returns interval
language sql immutable parallel safe
-- An expression, so that it is inlined.
return case
  when ladder is not null then ladder[least(greatest(attempt, 1), cardinality(ladder))]
  when date_part('epoch', backoff_base) <= 0 or date_part('epoch', backoff_cap) <= 0 then interval '0'
  -- Compared as logarithms: the power itself overflows long before it could be cut.
  when date_part('epoch', backoff_base) >= date_part('epoch', backoff_cap)
    or (greatest(attempt, 1) - 1) * ln(backoff_factor)
      >= ln(date_part('epoch', backoff_cap) / date_part('epoch', backoff_base)) then backoff_cap
  else make_interval(secs => least(
    date_part('epoch', backoff_base) * power(backoff_factor, greatest(attempt, 1) - 1), date_part('epoch', backoff_cap)
  ))
end;

comment on function rdq._delay(integer, interval, double precision, interval, interval[]) is
'Rung number attempt of the ladder, before jitter: least(cap, base * factor^(attempt - 1)), or the explicit ladder, whose last rung repeats.';

create or replace function rdq._jittered(delay interval, jitter double precision) returns interval
language sql volatile parallel safe
return delay * (1 + jitter * (2 * random() - 1));

comment on function rdq._jittered(interval, double precision) is
'A delay drawn evenly from delay * (1 - jitter) to delay * (1 + jitter); once for each row that calls it.';

create or replace function rdq._capped_retry_after(retry_after interval, backoff_cap interval) returns interval
language sql immutable strict parallel safe
-- Seconds, because adding an absurd interval to a time would raise. 24 hours, because a server that asks
-- for more than a day has asked for a person.
return make_interval(secs => greatest(0, least(
  extract(epoch from retry_after),
  greatest(86400, extract(epoch from backoff_cap))
))::double precision);

comment on function rdq._capped_retry_after(interval, interval) is
'What a worker asks to wait, at least zero and at most a day (or backoff_cap, where that is longer); null where it asks for nothing.';

create or replace function rdq._parse_retry_after(value jsonb) returns interval
language plpgsql immutable
as $$
declare
  content constant text := value #>> '{}';
begin
  if content ~ '^-?[0-9.]+([eE][-+]?[0-9]+)?$' then
    return make_interval(secs => least(greatest(content::numeric, 0), 1e9)::double precision);
  elsif jsonb_typeof(value) = 'string' then
    return content::interval;
  end if;
  return null;
exception when others then
  return null;
end
$$;

comment on function rdq._parse_retry_after(jsonb) is
'retry_after of a reported failure: a number of seconds or an interval as text. Anything else asks for nothing.';

create or replace function rdq._asked_to_wait(
  failure jsonb,
  backoff_cap interval,
  jitter double precision,
  left_until_deadline interval
) returns interval
language sql volatile parallel safe
-- A server that is overloaded says the same to everybody: if all came back when that time is over, it would be again.
-- But a task for which there is time enough is not drawn past its deadline.
return (
  select least(w.wait * (1 + jitter * random()), greatest(w.wait, coalesce(left_until_deadline, interval '1000 years')))
  from (select rdq._capped_retry_after(rdq._parse_retry_after(failure -> 'retry_after'), backoff_cap) as wait offset 0) w
  where w.wait is not null
);

comment on function rdq._asked_to_wait(jsonb, interval, double precision, interval) is
'How long a failure asks to wait: drawn evenly from its retry_after to retry_after * (1 + jitter), but not past a deadline before which there is time for it; null where it asks for nothing.';

create or replace function rdq._spent(runs bigint, releases bigint, max_releases integer) returns bigint
language sql immutable parallel safe
return runs + greatest(releases - max_releases, 0);

comment on function rdq._spent(bigint, bigint, integer) is
'Attempts spent in a life: every run, and the releases beyond max_releases.';

create or replace function rdq._verdict(
  outcome text,
  error_class text,
  spent bigint,
  max_attempts integer,
  ambiguous bigint,
  ambiguous_attempts integer,
  vanished bigint,
  vanish_limit integer,
  next_at timestamptz,
  give_up_at timestamptz
) returns text
language sql immutable parallel safe
return case
  when error_class = 'PERMANENT' then 'PERMANENT'
  -- A budget smaller than the vanish limit, all of it vanished, says the same thing about the task.
  when outcome = 'LEASE_EXPIRED' and vanished >= least(vanish_limit, max_attempts) then 'VANISHED'
  when error_class = 'AMBIGUOUS' and ambiguous >= ambiguous_attempts then 'AMBIGUOUS'
  when spent >= max_attempts and outcome = 'RELEASED' then 'UNROUTABLE'
  when spent >= max_attempts then 'EXHAUSTED'
  when next_at > give_up_at then 'DEADLINE'
end;

comment on function rdq._verdict(text, text, bigint, integer, bigint, integer, bigint, integer, timestamptz, timestamptz) is
'Why a task is dead after an attempt ended so; null while it is to be tried again. The counts include that attempt.';
