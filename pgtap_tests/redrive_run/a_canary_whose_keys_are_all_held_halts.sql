begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');
select rdq.cancel(rdq.submit('q', 'h', n::text, dedupe_key => n::text)) from generate_series(1, 4) n;
select rdq.submit('q', 'twin', n::text, dedupe_key => n::text) from generate_series(2, 4) n;

select * from rdq.redrive_where(queue => 'q', handler => 'h', canary => 3) \gset
select is(array[:'state', :'sent', :'skipped'], '{HALTED,0,0}', 'no canary, no redrive');
select ok(s.state_reason like 'no canary could be sent%', s.state_reason) from rdq.redrive_status(:'redrive_id') s;
select is(count(*), 4::bigint, 'all are still dead') from rdq.dead_letters;
select rdq.resume_redrive(:'redrive_id');
select rdq.tick();
select is(
  array[s.state, s.sent::text, s.skipped_why ->> 'key_held'], '{DONE,1,3}', 'resumed it sends what it can, and counts each once')
from rdq.redrive_status(:'redrive_id') s;

select rdq.purge(task_id) from rdq.dead_letters;
select * from rdq.redrive_where(since => '-infinity', canary => 2) \gset
select is(:'state'::text, 'DONE', 'where nothing matches it is done');
select is(count(*), 0::bigint, 'and nothing is left open') from rdq.redrives where state = 'RUNNING';

select * from finish();
rollback;
