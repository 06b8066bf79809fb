-- Endpoints: handlers that are HTTP callbacks. A queue and a handler's name lead to a URL; the runner
-- sends the payload there and takes the answer for the outcome. Where it may connect to is decided by
-- the runner, on the address, at every attempt: what is checked here is only the form.

create or replace function rdq.set_endpoint(
  queue text,
  handler text,
  url text,
  timeout interval default '30 seconds',
  headers jsonb default '{}',
  secret text default null,
  response_rules jsonb default '[]'
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  before rdq.endpoint;
  after rdq.endpoint;
begin
  perform rdq._require('admin', queue), rdq._queue(queue);
  perform rdq._check_name('handler', handler);
  perform rdq._check_endpoint(url, timeout, headers, secret, response_rules);
  after := row(queue, handler, url, timeout, headers, secret, response_rules, clock_timestamp());
  loop
    insert into rdq.endpoint select after.* on conflict do nothing;
    exit when found;
    select e.* into before
    from rdq.endpoint e
    where e.queue = set_endpoint.queue collate "C" and e.handler = set_endpoint.handler collate "C"
    for no key update;
    -- Unless it was dropped this instant.
    continue when not found;
    after.created_at := before.created_at;
    if after is not distinct from before then
      return;
    end if;
    update rdq.endpoint e
    set (url, timeout, headers, secret, response_rules)
      = (after.url, after.timeout, after.headers, after.secret, after.response_rules)
    where e.queue = before.queue and e.handler = before.handler;
    exit;
  end loop;
  perform rdq._audit('set_endpoint', queue => queue,
    before => rdq._audited_endpoint(before), after => rdq._audited_endpoint(after, before));
exception when lock_not_available then
  perform rdq._refuse_busy(format('the endpoint of queue "%s" for handler "%s"', queue, handler));
end
$$;

comment on function rdq.set_endpoint(text, text, text, interval, jsonb, text, jsonb) is
'Makes a handler of a queue an HTTP callback: each attempt is a POST of the payload to the URL. timeout bounds the whole exchange; secret is env:NAME, a variable of the runner that holds a Standard Webhooks secret (whsec_ and base64, of at least 24 bytes); response_rules override what a status means, the first that fits: [{"status": "409" or "4xx", "class": SUCCEEDED, TRANSIENT, PERMANENT or AMBIGUOUS}]. Errors: RD001, RD002, RD007, RD010.';

create or replace function rdq.drop_endpoint(queue text, handler text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
  before rdq.endpoint;
begin
  perform rdq._require('admin', queue);
  delete from rdq.endpoint e
  where e.queue = drop_endpoint.queue collate "C" and e.handler = drop_endpoint.handler collate "C"
  returning e.* into before;
  if not found then
    perform rdq._refuse('RD003',
      format('queue "%s" has no endpoint for handler "%s"', queue, handler), 'select * from rdq.endpoints lists them.');
  end if;
  perform rdq._audit('drop_endpoint', queue => queue, before => rdq._audited_endpoint(before));
exception when lock_not_available then
  perform rdq._refuse_busy(format('the endpoint of queue "%s" for handler "%s"', queue, handler));
end
$$;

comment on function rdq.drop_endpoint(text, text) is
'Takes a handler''s endpoint away; its tasks then need a runner that has such a handler. Errors: RD003, RD010.';

create or replace function rdq.callbacks(queues text[])
returns table (queue text, handler text, url text, timeout interval, headers jsonb, secret text, response_rules jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  chosen constant text[] collate "C" := rdq._chosen_queues(queues);
begin
  return query
  select e.queue, e.handler, e.url, e.timeout, e.headers, e.secret, e.response_rules
  from rdq.endpoint e
  where e.queue = any (chosen)
  order by e.queue, e.handler;
end
$$;

comment on function rdq.callbacks(text[]) is
'The endpoints of the queues (null: all that the caller may work in), for a runner. Errors: RD001, RD007.';

create or replace function rdq._audited_endpoint(endpoint rdq.endpoint, was rdq.endpoint default null) returns jsonb
language sql immutable
set intervalstyle = 'postgres'
-- Header fields may be secrets, and whoever looks at the queue sees its audit.
return case when endpoint.queue is not null then to_jsonb(endpoint) || jsonb_build_object('headers', (
  select coalesce(jsonb_object_agg(field.name, case
    when was.headers ->> field.name <> field.value then 'not shown, changed'
    else 'not shown'
  end), '{}')
  from jsonb_each_text(endpoint.headers) as field (name, value)
)) end;

comment on function rdq._audited_endpoint(rdq.endpoint, rdq.endpoint) is
'An endpoint as the audit keeps it, with the names of its header fields but not their values; null for none.';

create or replace function rdq._check_endpoint(url text, timeout interval, headers jsonb, secret text, response_rules jsonb)
returns void
language plpgsql immutable
as $$
declare
  problem text[];
begin
  problem := case
    -- No blank and no control character, whose place in a URL is only as %20 and the like (RFC 3986, section 2).
    when not coalesce(
        length(url) <= 2000
          and url collate "C" ~ '^https?://[^/?#@[:space:][:cntrl:]]+([/?][^#[:space:][:cntrl:]]*)?$'
          and url collate "C" !~ E'[\\u0080-\\u009f\\u200b-\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]', false) then
      array[format('url is not valid: %s', coalesce(
          quote_literal(left(regexp_replace(left(url, 2000) collate "C", '//[^/]*@', '//...@'), 80)), 'null')),
        'Give an absolute http or https URL of at most 2000 characters, without user, password, fragment, blanks or control characters.']
    when timeout is null or extract(epoch from timeout) not between 0.001 and 86400 then
      array[format('timeout is %s', coalesce(timeout::text, 'null')), 'Give an interval from 1 millisecond to 1 day.']
    when not rdq._are_header_fields(headers) then
      array['headers is not valid',
        'Give a flat object of strings without control characters, at most 16 KiB. Content-Type, Content-Length, Host, '
        'Idempotency-Key, webhook-* and rdq-* are set by the runner.']
    when length(secret) > 240 or secret collate "C" !~ '^env:[A-Za-z_][A-Za-z0-9_]*$' then
      array['secret is not a reference', 'Give env:NAME, the name of a variable of the runner: a secret itself is never stored.']
    when not rdq._are_response_rules(response_rules) then
      array['response_rules is not valid',
        'Give an array of {"status": "409" or "4xx", "class": "SUCCEEDED", "TRANSIENT", "PERMANENT" or "AMBIGUOUS"}.']
  end;
  if problem is not null then
    perform rdq._refuse('RD002', problem[1], problem[2]);
  end if;
end
$$;

comment on function rdq._check_endpoint(text, interval, jsonb, text, jsonb) is 'Refuses (RD002) an endpoint that cannot be called.';

create or replace function rdq._are_header_fields(headers jsonb) returns boolean
language sql immutable
-- Names are tokens (RFC 9110, section 5.6.2), values visible ASCII, spaces and tabs (section 5.5).
return coalesce(jsonb_typeof(headers) = 'object' and octet_length(headers::text) <= 16384 and not exists (
  select
  from jsonb_each(case jsonb_typeof(headers) when 'object' then headers else '{}' end) as field (name, value)
  where jsonb_typeof(field.value) <> 'string'
    or field.name !~ '^[-!#$%&''*+.^_`|~0-9A-Za-z]+$'
    or field.value #>> '{}' collate "C" !~ E'^[ -~\t]*$'
    or lower(field.name collate "C") ~ '^(content-type|content-length|host|idempotency-key|transfer-encoding|connection|webhook-.*|rdq-.*)$'
), false);

comment on function rdq._are_header_fields(jsonb) is 'Whether a value is an object of header fields that an endpoint may add.';

create or replace function rdq._are_response_rules(rules jsonb) returns boolean
language sql immutable
return coalesce(jsonb_typeof(rules) = 'array' and not exists (
  select
  from jsonb_path_query(rules, 'lax $[*]') as rule (content)
  where jsonb_typeof(rule.content) <> 'object'
    or coalesce(rule.content ->> 'status', '') !~ '^[1-5]([0-9][0-9]|xx)$'
    or coalesce(rule.content ->> 'class', '') not in ('SUCCEEDED', 'TRANSIENT', 'PERMANENT', 'AMBIGUOUS')
    or rule.content - '{status,class}'::text[] <> '{}'
), false);

comment on function rdq._are_response_rules(jsonb) is 'Whether a value is an array of rules for an endpoint''s answers.';
