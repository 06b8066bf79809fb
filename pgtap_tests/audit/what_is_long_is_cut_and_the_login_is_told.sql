begin;
\ir ../helpers/common.psql
select plan(6);

select rdq.create_queue('q');
select rdq.pause_queue('q', repeat('ä', 5000));
select ok(octet_length(a.reason) <= 4096, 'a reason is cut at 4 KiB') from rdq.audit a where a.action = 'pause_queue';
select ok(octet_length(a.reason) > 4000, 'and not much sooner') from rdq.audit a where a.action = 'pause_queue';

select set_config('rdq.actor', repeat('é', 500), true);
select rdq.resume_queue('q');
select ok(octet_length(a.actor) between 200 and 240, 'an actor at 240 bytes') from rdq.audit a where a.action = 'resume_queue';
select is(a.login, session_user::text, 'beside it is the user of the session') from rdq.audit a where a.action = 'resume_queue';
select set_config('rdq.actor', 'ada', true);
select rdq.pause_queue('q', 'short');
select is(a.actor || ' ' || a.reason, 'ada short', 'what is short is kept as it is')
from rdq.audit a
where a.action = 'pause_queue' and a.actor = 'ada';
select is(count(distinct a.login), 1::bigint, 'whoever is named, the session has one user') from rdq.audit a;

select * from finish();
rollback;
