-- Storable: whatever a handler or a server answers can be kept. Text is cut at a stated number of bytes,
-- on a character boundary, with a visible mark (rule 10; limits: section "Text and size" of docs/states.md).

create or replace function rdq._cut(content text, max_bytes integer) returns text
language plpgsql immutable
as $$
declare
  mark constant text := E'\n[cut by rdq]';
  bytes bytea;
  size integer := max_bytes - octet_length(mark);
begin
  -- left() first: a message of hundreds of megabytes is not converted whole.
  bytes := convert_to(left(content, max_bytes), 'UTF8');
  while get_byte(bytes, size) & 192 = 128 loop
    size := size - 1;
  end loop;
  return convert_from(substring(bytes from 1 for size), 'UTF8') || mark;
end
$$;

comment on function rdq._cut(text, integer) is 'The beginning of a text that is longer, with a mark: max_bytes bytes at most.';

create or replace function rdq._clip(content text, max_bytes integer) returns text
language sql immutable
-- Inlined: of what is short enough, a call would be most of the cost.
return case when octet_length(content) > max_bytes then rdq._cut(content, max_bytes) else content end;

comment on function rdq._clip(text, integer) is 'Text of at most max_bytes bytes: what is longer is cut on a character boundary and marked.';

create or replace function rdq._cut_detail(detail jsonb) returns jsonb
language plpgsql stable strict
as $$
declare
  content constant text := detail::text;
begin
  return case when octet_length(content) <= 16384 then detail
    else jsonb_build_object('cut by rdq', rdq._clip(content, 4096)) end;
end
$$;

comment on function rdq._cut_detail(jsonb) is '_clip_detail() of what is long.';

create or replace function rdq._clip_detail(detail jsonb) returns jsonb
language sql stable
-- As text it has at most six times as many bytes (a control character is six), so of most it need not be made.
return case when pg_column_size(detail) <= 2700 then detail else rdq._cut_detail(detail) end;

comment on function rdq._clip_detail(jsonb) is 'A failure''s detail; one of more than 16 KiB is kept as the beginning of its text.';

create or replace function rdq._clip_failure(failure jsonb) returns jsonb
language plpgsql stable strict
as $$
begin
  if pg_column_size(failure) <= 262144 or jsonb_typeof(failure) <> 'object' then
    return failure;
  end if;
  return (
    select jsonb_object_agg(f.key, case
      when f.key = 'detail' then rdq._clip_detail(f.value)
      when jsonb_typeof(f.value) in ('string', 'object', 'array') then to_jsonb(rdq._clip(f.value #>> '{}', 65536))
      else f.value
    end)
    from jsonb_each(failure) as f (key, value)
    where f.key in ('type', 'message', 'stack', 'class', 'at', 'retry_after', 'detail')
  );
end
$$;

comment on function rdq._clip_failure(jsonb) is
'A reported or handed-over failure of bounded size: what follows copies it several times, and one of 64 MB would take a gigabyte.';
