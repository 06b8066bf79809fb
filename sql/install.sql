-- The whole of rdq, in order: psql -f sql/install.sql, on an empty database or over an older version.
\set ON_ERROR_STOP on
set client_min_messages = warning;
begin;
set local check_function_bodies = off;
-- What the files mean depends on it.
set local standard_conforming_strings = on;

-- What the schema holds.
\ir ../migrations/0001.tables.sql
\ir ../migrations/0002.runners.sql
\ir ../migrations/0003.dead_letters.sql
\ir ../migrations/0004.identifiers.sql
\ir ../migrations/0005.state_in_tables.sql
\ir ../migrations/0006.roles.sql
\ir ../migrations/0007.redrives.sql

-- What it does.
\ir turn.sql
\ir storable.sql
\ir identity.sql
\ir audit.sql
\ir compression.sql
\ir policy.sql
\ir queue.sql
\ir history.sql
\ir transition.sql
\ir submit.sql
\ir low_water.sql
\ir claim.sql
\ir report.sql
\ir reclaim.sql
\ir dead_letter.sql
\ir cause.sql
\ir redrive.sql
\ir redrive_run.sql
\ir purge.sql
\ir endpoint.sql
\ir runner.sql
\ir maintain.sql
\ir observe.sql
\ir recent_stats.sql
\ir doctor.sql
\ir doctor_server.sql
\ir prune.sql
\ir access.sql

commit;
