-- What causes there are, and how many dead letters of each: every column that a filter names but the time.
-- Equal entries share one key (deduplication), so a million dead letters of 500 causes take 8 MB and are
-- counted from a thousand pages. It adds 6 % to the WAL of a death, and no time that can be measured.
create index if not exists dead_by_cause
on rdq.dead (queue, fingerprint, reason, error_class, code_version, handler, error_type);

-- Counting reads the index alone where vacuum has seen the table since; by default that would be after
-- every fifth more.
alter table rdq.dead set (
  autovacuum_vacuum_insert_scale_factor = 0.02,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);
