-- A length of time becomes text in the IntervalStyle of whoever acts; the audit is read by others, and later.
begin;
\ir ../helpers/common.psql

create temporary table style (name text);
insert into style values ('postgres'), ('postgres_verbose'), ('sql_standard'), ('iso_8601');
select plan(count(*)::integer) from style;

create function pg_temp.audited(style text) returns jsonb
language plpgsql
as $$
declare
  audited jsonb;
begin
  perform set_config('intervalstyle', style, true);
  perform rdq.create_queue('q', '{"lease": "90 seconds", "keep_dead": "14 days 02:03:04"}');
  perform rdq.alter_queue('q', '{"backoff_base": "1.5 seconds"}');
  perform rdq.set_endpoint('q', 'h', 'https://example.org/', timeout => '5 seconds');
  perform rdq.set_endpoint('q', 'h', 'https://example.org/', timeout => '7 seconds');
  perform rdq.drop_endpoint('q', 'h');
  perform rdq.drop_queue('q');
  perform rdq.purge_audit('400 days 01:00:00');
  audited := (
    select jsonb_agg(jsonb_build_object('action', a.action, 'filter', a.filter, 'before', a.before - keys.names, 'after', a.after - keys.names) order by a.at)
    from rdq.audit a
    cross join (values ('{created_at,first_id,last_id,first_at,last_at,transaction}'::text[])) keys (names)
    where a.at > clock_timestamp() - interval '1 year'
  );
  raise exception using errcode = 'YY000', message = audited::text;
exception when sqlstate 'YY000' then
  -- Taken back, so that the next one begins with the same.
  return sqlerrm::jsonb;
end
$$;

-- For purge_audit to have something to delete.
insert into rdq.audit (at, actor, action, affected) values (clock_timestamp() - interval '2 years', 'ada', 'pause_queue', 1);

select is(
  pg_temp.audited(style.name), pg_temp.audited('postgres'),
  style.name || ': ' || jsonb_array_length(pg_temp.audited(style.name)) || ' rows that tell the same'
)
from style;

select * from finish();
rollback;
