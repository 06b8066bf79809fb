-- What a task and a bulk redrive need to remember beyond 0.1.0.

-- The first start that was asked for, where that was later than the submit: the span of a task, which a redrive gives
-- it anew, is from there to the deadline.
alter table rdq.task add column if not exists run_at timestamptz;

-- Where a bulk redrive sends to, if not to where it came from.
alter table rdq.redrive_run add column if not exists to_queue text collate "C";
alter table rdq.redrive_run add column if not exists to_handler text collate "C";
alter table rdq.redrive_run add column if not exists to_handler_version text collate "C";

-- Tasks that it sent and an operator cancelled: these say nothing about what becomes of the others. And dead letters
-- that it cannot give a deadline, since they were submitted after theirs.
alter table rdq.redrive_run add column if not exists cancelled bigint not null default 0;
alter table rdq.redrive_run add column if not exists no_span bigint not null default 0;

alter table rdq.redriven drop constraint if exists redriven_outcome_check;
alter table rdq.redriven add constraint redriven_outcome_check check (outcome in ('SUCCEEDED', 'DEAD', 'CANCELLED'));

-- Dead letters that another transaction had locked when a bulk redrive came to them: it comes back for these.
create table if not exists rdq.redrive_passed (
  redrive_id uuid not null,
  task_id uuid not null,
  primary key (redrive_id, task_id)
);

-- Its result has one column more now.
drop function if exists rdq.tick(integer, text[]);
