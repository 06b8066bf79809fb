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

create or replace function rdq._clip_detail(detail jsonb) returns jsonb
language sql stable
return case
  when detail is null or octet_length(detail::text) <= 16384 then detail
  else jsonb_build_object('cut by rdq', rdq._clip(detail::text, 4096))
end;

comment on function rdq._clip_detail(jsonb) is 'A failure''s detail; one of more than 16 KiB is kept as the beginning of its text.';
