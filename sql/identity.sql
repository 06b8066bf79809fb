-- Identity: what version of rdq this is, the ids of tasks, who is calling, and how a call is refused.
--
-- The public functions run with the owner's rights (security definer), so the tables belong to nobody
-- else. Each pins its search_path, and asks _permitted() who may do what in which queue.
-- Every refusal goes through _refuse(), with an SQLSTATE of class RD:
--   RD001 unknown queue     RD002 invalid argument   RD003 not found          RD004 wrong state
--   RD005 id conflict       RD006 payload too large  RD007 not permitted      RD008 dedupe key conflict
--   RD009 too late          RD010 busy
--
-- Names are compared byte by byte, whatever collation an argument comes with: that of an argument would decide what
-- "=" means in here, with the owner's rights. So the columns that hold names are collate "C", which wins over the
-- collation of the database and refuses any other (42P22), and whatever compares an argument says collate "C".
--
-- No call waits for long for a lock that an idle transaction may hold: what operators call gives up after five
-- seconds (RD010), what is periodic skips it, and a report gives up too (55P03), to be sent again.

create or replace function rdq.version() returns text
language sql immutable
return '0.2.0.dev0';

comment on function rdq.version() is
'The version of this schema (semantic versioning; one that ends in .devN comes before the release of that number). A runner works with every schema of its own major and minor version.';

create or replace function rdq.uuid_v7() returns uuid
language sql volatile
-- A random version 4 UUID whose first 48 bits become the time in milliseconds. Version 4 (0100) turns into 7
-- (0111) by setting the two bits in between. An expression, so that it is inlined: a fifth of the time.
return encode(
  set_bit(
    set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        placing substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6
      ), 52, 1
    ), 53, 1
  ), 'hex'
)::uuid;

comment on function rdq.uuid_v7() is
'A new time-ordered UUID, version 7 (RFC 9562, section 5.7), with a precision of one millisecond.';

create or replace function rdq._refuse(code text, message text, hint text) returns void
language plpgsql
as $$
begin
  raise exception using errcode = code, message = message, hint = hint;
end
$$;

comment on function rdq._refuse(text, text, text) is 'Raises an error of class RD: what happened and why, and what to do.';

create or replace function rdq._refuse_busy(what text) returns void
language plpgsql
as $$
begin
  perform rdq._refuse('RD010',
    format('%s is locked by another transaction, which has not ended; nothing was changed', what),
    'Call again. If it stays so, end that transaction: select pid, usename, state, xact_start, query from pg_stat_activity '
    'where xact_start is not null order by xact_start;');
end
$$;

comment on function rdq._refuse_busy(text) is 'Refuses (RD010) what would have to wait for a lock for longer than its lock_timeout.';

create or replace function rdq._caller() returns name
language sql stable
-- SET ROLE, as connection poolers and REST gateways do it, is seen through the setting: inside a
-- security definer function current_user is the owner.
return coalesce(nullif(pg_catalog.current_setting('role'), 'none')::name, session_user);

comment on function rdq._caller() is 'The role that called: the one of SET ROLE, else the session''s user.';

create or replace function rdq._actor() returns text
language sql stable
return rdq._clip(coalesce(nullif(pg_catalog.current_setting('rdq.actor', true), ''), session_user::text), 240);

comment on function rdq._actor() is
'Whom the audit names: the setting rdq.actor (at most 240 bytes of it), else the session''s user.';

create or replace function rdq._like(glob text) returns text
language sql immutable strict parallel safe
return translate(
  replace(replace(replace(glob collate "C", E'\\', E'\\\\'), '%', E'\\%'), '_', E'\\_'), '*?', '%_'
);

comment on function rdq._like(text) is 'A glob (* any text, ? one character) as a LIKE pattern.';

create or replace function rdq._queue_patterns(capability text) returns text[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  caller constant name := rdq._caller();
begin
  if rdq._is_owner() then
    return null;
  end if;
  return array(
    select rdq._like(pattern.glob)
    from rdq.access a
    cross join unnest(a.queues) as pattern (glob)
    -- As joins these two took 1.5 times as long, in every call of who is not the owner.
    where a.capability = any (array(
        select c.capability from rdq._capabilities() c where _queue_patterns.capability collate "C" = any (c.includes)
      ))
      and pg_has_role(caller, a.role::oid, 'usage')
  );
end
$$;

comment on function rdq._queue_patterns(text) is
'The LIKE patterns of the queues in which the caller has a capability; null for the owner, who may do everything everywhere.';

create or replace function rdq._is_owner() returns boolean
language sql stable
return pg_has_role(rdq._caller(), current_user, 'usage');

comment on function rdq._is_owner() is 'Whether the caller of a function with the owner''s rights has them anyway. It spares it _queue_patterns().';

create or replace function rdq._permitted(queue text, patterns text[]) returns boolean
language sql immutable parallel safe
return patterns is null or queue collate "C" like any (patterns);

comment on function rdq._permitted(text, text[]) is 'Whether a queue is one of those that _queue_patterns() gave.';

create or replace function rdq._require(capability text, queue text) returns void
language plpgsql stable
as $$
declare
  patterns constant text[] := rdq._queue_patterns(capability);
begin
  if not rdq._permitted(queue, patterns) then
    perform rdq._refuse('RD007',
      format('role "%s" is not permitted to act as %s in queue "%s"', rdq._caller(), capability, queue),
      format('The owner or an admin of rdq can permit it: select rdq.grant_access(%L, %L, array[%L]);',
        rdq._caller(), capability, queue));
  end if;
end
$$;

comment on function rdq._require(text, text) is 'Refuses (RD007) unless the caller has the capability in the queue.';

create or replace function rdq._check_count(argument text, count integer) returns void
language plpgsql immutable
as $$
begin
  if rdq._is_count(count) is not true then
    perform rdq._refuse('RD002', format('%s is %s', argument, coalesce(count::text, 'null')), 'Give 1 to 10000.');
  end if;
end
$$;

comment on function rdq._check_count(text, integer) is 'Refuses (RD002) a number of rows or tasks that one call does not take.';

create or replace function rdq._is_count(count integer) returns boolean
language sql immutable
return count between 1 and 10000;

comment on function rdq._is_count(integer) is 'Whether one call takes so many rows or tasks; null for null.';

create or replace function rdq._check_name(argument text, name text) returns void
language plpgsql immutable
as $$
begin
  if rdq._is_name(name) is not true then
    perform rdq._refuse('RD002',
      format('%s is not a valid name: %s', argument, coalesce(quote_literal(left(name, 60)), 'null')),
      'A name has 1 to 240 of the characters a-z, 0-9, dot, underscore and hyphen, and begins with a letter or a digit.');
  end if;
end
$$;

comment on function rdq._check_name(text, text) is 'Refuses (RD002) what is not a name of a queue or handler.';

create or replace function rdq._is_name(name text) returns boolean
language sql immutable parallel safe
-- The length first: a pattern is not tried on megabytes.
return octet_length(name) <= 240 and name collate "C" ~ '^[a-z0-9][a-z0-9._-]*$';

comment on function rdq._is_name(text) is 'Whether something is the name of a queue or handler; null for null.';
