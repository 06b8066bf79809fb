-- Every call on a task in every state: what it answers, the state after it, which rows of the task it
-- adds (+), deletes (-) or changes (~), and the whole history then. One table: this is the contract.
--
--   waiting    failed once, not yet due                    with the token of the attempt that failed
--   due        the same, due now                           with that token
--   held       claimed again                               with the right token
--   expired    the same, its lease has ended               with the right token
--   not mine   claimed again                               with the token of the attempt before
--   vanished   claimed again, expired and taken back       with the token that was lost
--   succeeded  claimed again and completed                 with the token that completed it
--   dead       claimed again and failed as PERMANENT       with the token that failed
--   cancelled  claimed again and cancelled meanwhile       with the token that was lost
--   unknown    never submitted
begin;
select plan(180);
\ir ../helpers/common.psql
\ir ../helpers/time.psql
\ir ../helpers/attempts.psql

create temp table contract (
  place integer generated always as identity,
  call text,
  state text,
  answer text,
  status text,
  changes text,
  history text
);

insert into contract (call, state, answer, status, changes, history) values
  ('complete',          'waiting',   'false',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('complete',          'due',       'false',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('complete',          'held',      'true',            'SUCCEEDED', 'lease- attempt+ dedupe-',              '1 TRANSIENT, 2 SUCCEEDED'),
  ('complete',          'expired',   'true',            'SUCCEEDED', 'lease- attempt+ dedupe-',              '1 TRANSIENT, 2 SUCCEEDED'),
  ('complete',          'not mine',  'false',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('complete',          'vanished',  'false',           'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late SUCCEEDED)'),
  ('complete',          'succeeded', 'false',           'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('complete',          'dead',      'false',           'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('complete',          'cancelled', 'false',           'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late SUCCEEDED)'),
  ('complete',          'unknown',   'false',           null,        '',                                     ''),

  ('fail as TRANSIENT', 'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as TRANSIENT', 'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as TRANSIENT', 'held',      'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 TRANSIENT'),
  ('fail as TRANSIENT', 'expired',   'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 TRANSIENT'),
  ('fail as TRANSIENT', 'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as TRANSIENT', 'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late FAILED)'),
  ('fail as TRANSIENT', 'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('fail as TRANSIENT', 'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('fail as TRANSIENT', 'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late FAILED)'),
  ('fail as TRANSIENT', 'unknown',   'stale',           null,        '',                                     ''),

  ('fail as PERMANENT', 'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as PERMANENT', 'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as PERMANENT', 'held',      'DEAD PERMANENT',  'DEAD',      'lease- dead+ attempt+ dedupe-',        '1 TRANSIENT, 2 PERMANENT'),
  ('fail as PERMANENT', 'expired',   'DEAD PERMANENT',  'DEAD',      'lease- dead+ attempt+ dedupe-',        '1 TRANSIENT, 2 PERMANENT'),
  ('fail as PERMANENT', 'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as PERMANENT', 'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late FAILED)'),
  ('fail as PERMANENT', 'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('fail as PERMANENT', 'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('fail as PERMANENT', 'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late FAILED)'),
  ('fail as PERMANENT', 'unknown',   'stale',           null,        '',                                     ''),

  ('fail as AMBIGUOUS', 'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as AMBIGUOUS', 'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as AMBIGUOUS', 'held',      'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 AMBIGUOUS'),
  ('fail as AMBIGUOUS', 'expired',   'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 AMBIGUOUS'),
  ('fail as AMBIGUOUS', 'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as AMBIGUOUS', 'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late FAILED)'),
  ('fail as AMBIGUOUS', 'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('fail as AMBIGUOUS', 'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('fail as AMBIGUOUS', 'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late FAILED)'),
  ('fail as AMBIGUOUS', 'unknown',   'stale',           null,        '',                                     ''),

  ('fail',              'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail',              'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail',              'held',      'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 AMBIGUOUS'),
  ('fail',              'expired',   'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 AMBIGUOUS'),
  ('fail',              'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail',              'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late FAILED)'),
  ('fail',              'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('fail',              'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('fail',              'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late FAILED)'),
  ('fail',              'unknown',   'stale',           null,        '',                                     ''),

  ('fail as NONSENSE',  'waiting',   'RD002',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as NONSENSE',  'due',       'RD002',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('fail as NONSENSE',  'held',      'RD002',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as NONSENSE',  'expired',   'RD002',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as NONSENSE',  'not mine',  'RD002',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('fail as NONSENSE',  'vanished',  'RD002',           'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('fail as NONSENSE',  'succeeded', 'RD002',           'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('fail as NONSENSE',  'dead',      'RD002',           'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('fail as NONSENSE',  'cancelled', 'RD002',           'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('fail as NONSENSE',  'unknown',   'RD002',           null,        '',                                     ''),

  ('report a success',  'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('report a success',  'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('report a success',  'held',      'SUCCEEDED',       'SUCCEEDED', 'lease- attempt+ dedupe-',              '1 TRANSIENT, 2 SUCCEEDED'),
  ('report a success',  'expired',   'SUCCEEDED',       'SUCCEEDED', 'lease- attempt+ dedupe-',              '1 TRANSIENT, 2 SUCCEEDED'),
  ('report a success',  'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('report a success',  'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late SUCCEEDED)'),
  ('report a success',  'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('report a success',  'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('report a success',  'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late SUCCEEDED)'),
  ('report a success',  'unknown',   'stale',           null,        '',                                     ''),

  ('report a failure',  'waiting',   'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('report a failure',  'due',       'stale PENDING',   'PENDING',   '',                                     '1 TRANSIENT'),
  ('report a failure',  'held',      'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 TRANSIENT'),
  ('report a failure',  'expired',   'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 TRANSIENT'),
  ('report a failure',  'not mine',  'stale IN_FLIGHT', 'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('report a failure',  'vanished',  'stale PENDING',   'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late FAILED)'),
  ('report a failure',  'succeeded', 'stale SUCCEEDED', 'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('report a failure',  'dead',      'stale DEAD',      'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('report a failure',  'cancelled', 'stale DEAD',      'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late FAILED)'),
  ('report a failure',  'unknown',   'stale',           null,        '',                                     ''),

  ('release',           'waiting',   'lost',            'PENDING',   '',                                     '1 TRANSIENT'),
  ('release',           'due',       'lost',            'PENDING',   '',                                     '1 TRANSIENT'),
  ('release',           'held',      'given back',      'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 RELEASED'),
  ('release',           'expired',   'given back',      'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 RELEASED'),
  ('release',           'not mine',  'lost',            'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('release',           'vanished',  'lost',            'PENDING',   'attempt~',                             '1 TRANSIENT, 2 LEASE_EXPIRED (late RELEASED)'),
  ('release',           'succeeded', 'lost',            'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('release',           'dead',      'lost',            'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('release',           'cancelled', 'lost',            'DEAD',      'attempt~',                             '1 TRANSIENT, 2 RELEASED (late RELEASED)'),
  ('release',           'unknown',   'lost',            null,        '',                                     ''),

  ('heartbeat',         'waiting',   'lost',            'PENDING',   '',                                     '1 TRANSIENT'),
  ('heartbeat',         'due',       'lost',            'PENDING',   '',                                     '1 TRANSIENT'),
  ('heartbeat',         'held',      'held',            'IN_FLIGHT', 'lease~',                               '1 TRANSIENT'),
  ('heartbeat',         'expired',   'held',            'IN_FLIGHT', 'lease~',                               '1 TRANSIENT'),
  ('heartbeat',         'not mine',  'lost',            'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('heartbeat',         'vanished',  'lost',            'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('heartbeat',         'succeeded', 'lost',            'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('heartbeat',         'dead',      'lost',            'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('heartbeat',         'cancelled', 'lost',            'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('heartbeat',         'unknown',   'lost',            null,        '',                                     ''),

  ('claim',             'waiting',   'nothing',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('claim',             'due',       'attempt 2',       'IN_FLIGHT', 'due- lease+',                          '1 TRANSIENT'),
  ('claim',             'held',      'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('claim',             'expired',   'nothing',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('claim',             'not mine',  'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('claim',             'vanished',  'nothing',         'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('claim',             'succeeded', 'nothing',         'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('claim',             'dead',      'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('claim',             'cancelled', 'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('claim',             'unknown',   'nothing',         null,        '',                                     ''),

  ('reclaim',           'waiting',   'nothing',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('reclaim',           'due',       'nothing',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('reclaim',           'held',      'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('reclaim',           'expired',   'PENDING',         'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('reclaim',           'not mine',  'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('reclaim',           'vanished',  'nothing',         'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('reclaim',           'succeeded', 'nothing',         'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('reclaim',           'dead',      'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('reclaim',           'cancelled', 'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('reclaim',           'unknown',   'nothing',         null,        '',                                     ''),

  ('tick',              'waiting',   'nothing',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('tick',              'due',       'nothing',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('tick',              'held',      'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('tick',              'expired',   '1 reclaimed',     'PENDING',   'due+ lease- attempt+',                 '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('tick',              'not mine',  'nothing',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('tick',              'vanished',  'nothing',         'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('tick',              'succeeded', 'nothing',         'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('tick',              'dead',      'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('tick',              'cancelled', 'nothing',         'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('tick',              'unknown',   'nothing',         null,        '',                                     ''),

  ('cancel',            'waiting',   'done',            'DEAD',      'due- dead+ dedupe- audit+',            '1 TRANSIENT'),
  ('cancel',            'due',       'done',            'DEAD',      'due- dead+ dedupe- audit+',            '1 TRANSIENT'),
  ('cancel',            'held',      'done',            'DEAD',      'lease- dead+ attempt+ dedupe- audit+', '1 TRANSIENT, 2 RELEASED'),
  ('cancel',            'expired',   'done',            'DEAD',      'lease- dead+ attempt+ dedupe- audit+', '1 TRANSIENT, 2 RELEASED'),
  ('cancel',            'not mine',  'done',            'DEAD',      'lease- dead+ attempt+ dedupe- audit+', '1 TRANSIENT, 2 RELEASED'),
  ('cancel',            'vanished',  'done',            'DEAD',      'due- dead+ dedupe- audit+',            '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('cancel',            'succeeded', 'RD004',           'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('cancel',            'dead',      'RD004',           'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('cancel',            'cancelled', 'RD004',           'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('cancel',            'unknown',   'RD003',           null,        '',                                     ''),

  ('cancel_where',      'waiting',   '1, 0 left',       'DEAD',      'due- dead+ dedupe-',                   '1 TRANSIENT'),
  ('cancel_where',      'due',       '1, 0 left',       'DEAD',      'due- dead+ dedupe-',                   '1 TRANSIENT'),
  ('cancel_where',      'held',      '1, 0 left',       'DEAD',      'lease- dead+ attempt+ dedupe-',        '1 TRANSIENT, 2 RELEASED'),
  ('cancel_where',      'expired',   '1, 0 left',       'DEAD',      'lease- dead+ attempt+ dedupe-',        '1 TRANSIENT, 2 RELEASED'),
  ('cancel_where',      'not mine',  '1, 0 left',       'DEAD',      'lease- dead+ attempt+ dedupe-',        '1 TRANSIENT, 2 RELEASED'),
  ('cancel_where',      'vanished',  '1, 0 left',       'DEAD',      'due- dead+ dedupe-',                   '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('cancel_where',      'succeeded', '0, 0 left',       'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('cancel_where',      'dead',      '0, 0 left',       'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('cancel_where',      'cancelled', '0, 0 left',       'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('cancel_where',      'unknown',   '0, 0 left',       null,        '',                                     ''),

  ('redrive',           'waiting',   'RD004',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('redrive',           'due',       'RD004',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('redrive',           'held',      'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('redrive',           'expired',   'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('redrive',           'not mine',  'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('redrive',           'vanished',  'RD004',           'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('redrive',           'succeeded', 'RD004',           'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('redrive',           'dead',      'PENDING',         'PENDING',   'due+ dead- dedupe+ audit+',            '1 TRANSIENT, 2 PERMANENT'),
  ('redrive',           'cancelled', 'PENDING',         'PENDING',   'due+ dead- dedupe+ audit+',            '1 TRANSIENT, 2 RELEASED'),
  ('redrive',           'unknown',   'RD003',           null,        '',                                     ''),

  ('purge',             'waiting',   'RD004',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('purge',             'due',       'RD004',           'PENDING',   '',                                     '1 TRANSIENT'),
  ('purge',             'held',      'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('purge',             'expired',   'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('purge',             'not mine',  'RD004',           'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('purge',             'vanished',  'RD004',           'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('purge',             'succeeded', 'done',            null,        'task- attempt- audit+',                ''),
  ('purge',             'dead',      'done',            null,        'task- dead- attempt- audit+',          ''),
  ('purge',             'cancelled', 'done',            null,        'task- dead- attempt- audit+',          ''),
  ('purge',             'unknown',   'RD003',           null,        '',                                     ''),

  ('submit again',      'waiting',   'same id',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('submit again',      'due',       'same id',         'PENDING',   '',                                     '1 TRANSIENT'),
  ('submit again',      'held',      'same id',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('submit again',      'expired',   'same id',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('submit again',      'not mine',  'same id',         'IN_FLIGHT', '',                                     '1 TRANSIENT'),
  ('submit again',      'vanished',  'same id',         'PENDING',   '',                                     '1 TRANSIENT, 2 LEASE_EXPIRED'),
  ('submit again',      'succeeded', 'same id',         'SUCCEEDED', '',                                     '1 TRANSIENT, 2 SUCCEEDED'),
  ('submit again',      'dead',      'same id',         'DEAD',      '',                                     '1 TRANSIENT, 2 PERMANENT'),
  ('submit again',      'cancelled', 'same id',         'DEAD',      '',                                     '1 TRANSIENT, 2 RELEASED'),
  ('submit again',      'unknown',   'same id',         'PENDING',   'task+ due+ dedupe+',                   '');

-- Brings a new task of a new queue into a state.
create function pg_temp.arrange(queue text, state text, out task_id uuid, out claim_token uuid)
language plpgsql
as $$
declare
  next_token uuid;
begin
  perform rdq.create_queue(queue, '{"keep_succeeded": "forever"}');
  task_id := rdq.uuid_v7();
  claim_token := rdq.uuid_v7();
  if state = 'unknown' then
    return;
  end if;
  perform rdq.submit(queue, 'h', 'x', dedupe_key => 'k', task_id => task_id);
  claim_token := (pg_temp.claim_one(queue)).claim_token;
  perform rdq.fail(task_id, claim_token, 'Down', error_class => 'TRANSIENT');
  if state = 'waiting' then
    return;
  end if;
  perform pg_temp.pass('1 day');
  if state = 'due' then
    return;
  end if;
  next_token := (pg_temp.claim_one(queue)).claim_token;
  if state = 'not mine' then
    return;
  end if;
  claim_token := next_token;
  case state
    when 'held' then null;
    when 'expired' then perform pg_temp.pass('1 day');
    when 'vanished' then
      perform pg_temp.pass('1 day');
      perform rdq.reclaim(queues => array[queue]);
    when 'succeeded' then perform rdq.complete(task_id, claim_token);
    when 'dead' then perform rdq.fail(task_id, claim_token, 'Bad', error_class => 'PERMANENT');
    when 'cancelled' then perform rdq.cancel(task_id);
  end case;
end
$$;

create function pg_temp.reported(failure jsonb, task_id uuid, claim_token uuid) returns text
language sql
begin atomic
  select concat_ws(' ', case when r.stale then 'stale' end, r.status, r.dead_reason)
  from rdq.report(array[task_id], array[claim_token], array[failure]) r;
end;

create function pg_temp.failed(error_class text, task_id uuid, claim_token uuid) returns text
language sql
begin atomic
  select concat_ws(' ', case when f.stale then 'stale' end, f.status, f.dead_reason)
  from rdq.fail(task_id, claim_token, 'Down', 'it is down', error_class => error_class) f;
end;

-- Makes a call, and says in a few words what it answered.
create function pg_temp.answer(call text, queue text, task uuid, token uuid) returns text
language plpgsql
as $$
begin
  return case call
    when 'complete' then rdq.complete(task, token)::text
    when 'fail' then pg_temp.failed(null, task, token)
    when 'report a success' then pg_temp.reported(null, task, token)
    when 'report a failure' then pg_temp.reported('{"class": "TRANSIENT"}', task, token)
    when 'release' then (
      select case when count(r) = 1 then 'given back' else 'lost' end
      from rdq.release(array[task], array[token]) r
    )
    when 'heartbeat' then (
      select case when count(r) = 1 then 'held' else 'lost' end
      from rdq.heartbeat(array[task], array[token], '1 hour') r
    )
    when 'claim' then (
      select coalesce(string_agg('attempt ' || c.attempt_no, ', '), 'nothing')
      from rdq.claim(array[queue], 'tester', 10) c
    )
    when 'reclaim' then (
      select coalesce(string_agg(r.status, ', '), 'nothing') from rdq.reclaim(10, array[queue]) r
    )
    when 'tick' then (
      select case t.reclaimed + t.given_up + t.redriven + t.purged
        when 0 then 'nothing'
        when t.reclaimed then t.reclaimed || ' reclaimed'
      end
      from rdq.tick(10, array[queue]) t
    )
    when 'cancel' then 'done' || rdq.cancel(task, 'no longer needed')::text
    when 'cancel_where' then (select c.cancelled || ', ' || c.remaining || ' left' from rdq.cancel_where(queue) c)
    when 'redrive' then (select r.status from rdq.redrive(task, reason => 'repaired') r)
    when 'purge' then 'done' || rdq.purge(task, 'not needed')::text
    when 'submit again' then
      case when rdq.submit(queue, 'h', 'x', dedupe_key => 'k', task_id => task) = task then 'same id' end
    else pg_temp.failed(substring(call from 'fail as (.*)'), task, token)
  end;
exception when others then
  return sqlstate;
end
$$;

-- The rows of a task in each table; and all others, as one number.
create function pg_temp.rows_of(task uuid) returns table (place integer, name text, count bigint, content text)
language plpgsql
as $$
begin
  return query
  select 1, 'task', count(*), string_agg(t::text, '') from rdq.task t where t.id = task
  union all
  select 2, 'due', count(*), string_agg(d::text, '') from rdq.due d where d.task_id = task
  union all
  select 3, 'lease', count(*), string_agg(l::text, '') from rdq.lease l where l.task_id = task
  union all
  select 4, 'dead', count(*), string_agg(d::text, '') from rdq.dead d where d.task_id = task
  union all
  select 5, 'attempt', count(*), string_agg(a::text, '' order by a.attempt_no) from rdq.attempt a where a.task_id = task
  union all
  select 6, 'dedupe', count(*), string_agg(d::text, '') from rdq.dedupe d where d.task_id = task
  union all
  select 7, 'audit', count(*), string_agg(a::text, '' order by a.id) from rdq.audit a where a.task_id = task
  union all
  select 8, 'others', null, sum(hashtext(o.content))::text
  from (
    select t::text from rdq.task t where t.id <> task
    union all
    select d::text from rdq.due d where d.task_id <> task
    union all
    select l::text from rdq.lease l where l.task_id <> task
    union all
    select d::text from rdq.dead d where d.task_id <> task
    union all
    select a::text from rdq.attempt a where a.task_id <> task
    union all
    select d::text from rdq.dedupe d where d.task_id <> task
    union all
    select q::text from rdq.queue q
  ) o (content);
end
$$;

create temp table before (place integer, name text, count bigint, content text);

-- Plays a row of the contract, says what was seen, and clears it away.
create function pg_temp.played(row_no integer, call text, state text, out seen contract)
language plpgsql
as $$
declare
  home constant text := 'q' || row_no;
  task uuid;
  token uuid;
begin
  select a.task_id, a.claim_token into task, token from pg_temp.arrange(home, state) a;
  truncate before;
  insert into before select * from pg_temp.rows_of(task);
  seen := row(row_no, call, state, pg_temp.answer(call, home, task, token));
  seen.status := pg_temp.status_of(task);
  seen.history := pg_temp.history_of(task);
  select coalesce(string_agg(
    a.name || case when a.count > b.count then '+' when a.count < b.count then '-' else '~' end,
    ' ' order by a.place
  ), '')
  into seen.changes
  from pg_temp.rows_of(task) a
  join before b on b.place = a.place
  where a.content is distinct from b.content;
  if (
    select sum(r.count) filter (where r.name in ('due', 'lease', 'dead')) + (seen.status = 'SUCCEEDED')::integer
      <> sum(r.count) filter (where r.name = 'task')
    from pg_temp.rows_of(task) r
  ) then
    seen.changes := seen.changes || ' (and its tickets are not one)';
  end if;
  delete from rdq.task t where t.id = task;
  delete from rdq.due d where d.task_id = task;
  delete from rdq.lease l where l.task_id = task;
  delete from rdq.dead d where d.task_id = task;
  delete from rdq.attempt a where a.task_id = task;
  delete from rdq.dedupe d where d.task_id = task;
  delete from rdq.queue q where q.queue = home;
end
$$;

-- Neighbours in every state, which no call may touch.
select pg_temp.arrange('neighbour-' || place, state)
from unnest('{waiting, held, not mine, vanished, succeeded, dead, cancelled, due, expired}'::text[]) with ordinality
  as n (state, place);

select is(
  pg_temp.played(c.place, c.call, c.state)::text, c::text, format('%s, when the task is %s', c.call, c.state)
)
from contract c
order by c.place;

select * from finish();
rollback;
