-- Turns: what one session at a time may do in the whole database. A turn is a row that is locked with "for update"
-- until the end of the transaction, which only the functions of rdq can do. Anybody who may connect can take an
-- advisory lock, and keep it.

-- Whoever grants or revokes meanwhile, and what is loaded from here on, would meet in the catalogue.
do $$
begin
  insert into rdq.turn values ('access') on conflict do nothing;
  perform from rdq.turn t where t.name = 'access' for update;
end
$$;

create or replace function rdq._try_turn(name text) returns boolean
language plpgsql
set enable_seqscan = off
as $$
begin
  perform from rdq.turn t where t.name = _try_turn.name for update skip locked;
  if found then
    return true;
  elsif exists (select from rdq.turn t where t.name = _try_turn.name) then
    return false;
  end if;
  -- After a restore of the schema without its data.
  insert into rdq.turn values (_try_turn.name) on conflict do nothing;
  return found;
end
$$;

comment on function rdq._try_turn(text) is 'Takes a turn until the end of the transaction; false where another session has it.';

create or replace function rdq._take_turn(name text, what text) returns void
language plpgsql
set lock_timeout = '5s'
as $$
begin
  insert into rdq.turn values (_take_turn.name) on conflict do nothing;
  perform from rdq.turn t where t.name = _take_turn.name for update;
exception when lock_not_available then
  perform rdq._refuse_busy(what);
end
$$;

comment on function rdq._take_turn(text, text) is
'Takes a turn until the end of the transaction; waits for another session for five seconds at most, and then refuses (RD010).';
