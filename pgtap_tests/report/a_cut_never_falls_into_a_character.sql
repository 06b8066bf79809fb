-- Characters of one to four bytes at every offset to the limit. A cut inside one would raise, or lose more
-- of the text than it must.
begin;
select plan(4);

create temp table cut as
select
  v.kind, v.offset, t.content, rdq._clip(t.content, 100) as kept
from (
  select kind, "offset"
  from unnest('{é, €, 😀, aé, a€, a😀, é€, €😀, aé€😀}'::text[]) as k (kind)
  cross join generate_series(0, 100) as o ("offset")
) v
cross join lateral (select repeat('a', v.offset) || repeat(v.kind, 100) as content) t;

select is(count(*), 909::bigint, 'nine kinds of text at 101 offsets are cut') from cut where kept <> content;
select is_empty(
  $$ select * from cut where octet_length(kept) not between 97 and 100 $$, 'to 100 bytes, or up to three fewer'
);
select is_empty(
  $$ select * from cut where right(kept, 13) <> E'\n[cut by rdq]' $$, 'with the mark at the end'
);
select is_empty(
  $$ select * from cut where not starts_with(content, left(kept, -13)) $$, 'after what was there'
);

select * from finish();
rollback;
