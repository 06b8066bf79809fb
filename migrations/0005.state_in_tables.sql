-- All state is in rows of tables, so that logical replication and a restore of the data bring all of it: sequences
-- are not replicated. Whoever uses a number of the audit that was taken elsewhere would fail every audited call.

alter table rdq.audit alter column id drop identity if exists;
-- The time in microseconds, and eleven random bits, since two may come at once.
alter table rdq.audit alter column id
  set default (extract(epoch from clock_timestamp()) * 1000000)::bigint * 2048 + floor(random() * 2048)::bigint;

-- The user of the session, beside the actor that it claims to act for.
alter table rdq.audit add column if not exists login text collate "C";

-- A row for each thing that one session at a time may do. It is locked with "for update", which only rdq's functions
-- can: advisory locks are open to every role that may connect.
create table if not exists rdq.turn (
  name text collate "C" primary key
);
insert into rdq.turn values ('access'), ('low water'), ('queue stats') on conflict do nothing;

-- Which role wrote an entry of the registry: nobody else changes it.
alter table rdq.runner add column if not exists role text collate "C";
