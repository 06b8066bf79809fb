begin;
select plan(3);

select is(rdq._classify(null, 'Down', '[]'), 'AMBIGUOUS', 'with a type');
select is(rdq._classify(null, null, '[]'), 'AMBIGUOUS', 'without one');
select is(rdq._classify('TRANSIENT', 'Down', '[]'), 'TRANSIENT', 'unless the worker says what it is');

select * from finish();
rollback;
