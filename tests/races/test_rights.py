"""What an operator of some queues may see and do, through every way in which a role is taken on.

Two queues hold the same: ``payments.eu`` is the operator's own, ``mails`` is another team's. What
is called here is everything that an operator can call, by ``rdq._capability_names``: a function
that is new there, and not in the tables below, makes a test fail.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from tests.races.roles import WAYS, Client, Roles, gateway

LOOKS: Mapping[str, tuple[str, ...]] = {
    "tasks": ("select * from rdq.tasks",),
    "queues": ("select * from rdq.queues",),
    "queue_stats": ("select * from rdq.queue_stats",),
    "recent_queue_stats": ("select * from rdq.recent_queue_stats()",),
    "dead_letters": ("select * from rdq.dead_letters", "select * from rdq.dead_letters()"),
    "dead_letter_groups": ("select * from rdq.dead_letter_groups()",),
    "dead_letter_timeline": ("select * from rdq.dead_letter_timeline()",),
    "redrives": ("select * from rdq.redrives",),
    "audit_log": ("select * from rdq.audit_log",),
    "endpoints": ("select * from rdq.endpoints",),
    "runners": ("select * from rdq.runners",),
    "doctor": ("select * from rdq.doctor()", "select * from rdq.doctor(deep => true)"),
    "_doctor": ("select * from rdq._doctor(true, null)",),
}
"""What shows many: not a word of the other team is in it."""

ACTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "history": (("RD003", "select * from rdq.history(%(dead)s)"),),
    "envelope": (("RD003", "select rdq.envelope(%(dead)s)"),),
    "redrive": (
        ("RD003", "select rdq.redrive(%(dead)s)"),
        ("RD003", "select rdq.redrive(%(dead)s, 'edited')"),
        ("RD003", "select rdq.redrive(%(dead)s, '{}'::json)"),
        ("RD003", "select rdq.redrive(%(dead)s, '{}'::jsonb, content_type => 'text/csv')"),
        ("RD003", "select rdq.redrive(%(dead)s, 'edited'::bytea, headers => '{}')"),
    ),
    "cancel": (
        ("RD003", "select rdq.cancel(%(waiting)s)"),
        ("RD003", "select rdq.cancel(%(held)s)"),
    ),
    "cancel_where": (
        ("RD007", "select rdq.cancel_where(queue => %(queue)s, dry_run => true)"),
        ("RD007", "select rdq.cancel_where(queue => %(queue)s)"),
    ),
    "purge": (
        ("RD003", "select rdq.purge(%(dead)s)"),
        ("RD003", "select rdq.purge(%(done)s)"),
    ),
    "redrive_status": (("RD003", "select * from rdq.redrive_status(%(running)s)"),),
    "pause_redrive": (("RD003", "select rdq.pause_redrive(%(running)s)"),),
    "resume_redrive": (("RD003", "select rdq.resume_redrive(%(paused)s)"),),
    "cancel_redrive": (("RD003", "select rdq.cancel_redrive(%(running)s)"),),
    "redrive_where": (
        ("RD007", "select rdq.redrive_where(queue => %(queue)s)"),
        ("RD007", "select rdq.redrive_where(queue => %(queue)s, dry_run => true)"),
    ),
    "purge_where": (
        ("RD007", "select rdq.purge_where(queue => %(queue)s)"),
        ("RD007", "select rdq.purge_where(queue => %(queue)s, dry_run => true)"),
    ),
    "pause_queue": (("RD007", "select rdq.pause_queue(%(queue)s, 'another reason')"),),
    "resume_queue": (("RD007", "select rdq.resume_queue(%(queue)s)"),),
    "reclaim": (("RD007", "select rdq.reclaim(10, array[%(queue)s])"),),
    "tick": (("RD007", "select rdq.tick(10, array[%(queue)s])"),),
}
"""What names one: done where it is the operator's own, refused so where it is the other team's."""

BULK: Mapping[str, tuple[str, str]] = {
    "redrive_where": (
        "select matched from rdq.redrive_where(since => '-infinity', dry_run => true)",
        "select matched from rdq.redrive_where(since => '-infinity')",
    ),
    "cancel_where": (
        "select remaining from rdq.cancel_where(since => '-infinity', dry_run => true)",
        "select cancelled from rdq.cancel_where(since => '-infinity')",
    ),
    "purge_where": (
        "select remaining from rdq.purge_where(since => '-infinity', dry_run => true)",
        "select purged from rdq.purge_where(since => '-infinity')",
    ),
    "reclaim": ("select 1", "select count(*) from rdq.reclaim()"),
    "tick": ("select 1", "select reclaimed from rdq.tick()"),
}
"""What takes all that it may: how many it says they are, and how many it then takes."""

HARMLESS: Mapping[str, str] = {
    "version": "select rdq.version()",
    "fingerprint": "select rdq.fingerprint('h', 'E', 'm')",
    "refresh_queue_stats": "select rdq.refresh_queue_stats()",
    "_queue_patterns": "select rdq._queue_patterns('operator')",
    "_spent": "select rdq._spent(1, 1, 1)",
    "_word_characters": "select rdq._word_characters()",
    "_may_see_redrive": "select rdq._may_see_redrive('{}', '{}', '{}')",
}
"""What tells nothing that is stored, but for the caller's own rights."""


@dataclass(frozen=True)
class Holdings:
    """What a queue holds: a task in each state, and two bulk redrives."""

    queue: str
    dead: UUID
    waiting: UUID
    held: UUID
    done: UUID
    running: UUID
    paused: UUID


@dataclass(frozen=True)
class Place:
    """A database in which two teams have a queue each."""

    roles: Roles
    ours: Holdings
    theirs: Holdings

    def value(self, query: str, *parameters: object) -> Any:
        row = self.roles.owner.execute(query.encode(), parameters).fetchone()
        assert row
        return row[0]

    def told_of(self, holdings: Holdings, rows: object) -> list[str]:
        """Return what is named of a queue; every text in it has the name of the queue in it."""
        return [word for word in map(str, asdict(holdings).values()) if word in str(rows)]

    def stored_of(self, holdings: Holdings) -> list[str]:
        """Return everything that is stored of a queue."""
        tables = ("queue", "task", "due", "lease", "dead", "attempt", "endpoint", "audit")
        parts = [f"select to_jsonb(t) from rdq.{table} t where t.queue = %(q)s" for table in tables]
        parts.append("select to_jsonb(t) from rdq.redrive_run t where t.filter ->> 'queue' = %(q)s")
        rows = self.roles.owner.execute(" union all ".join(parts).encode(), {"q": holdings.queue})
        return sorted(str(row) for row in rows)


@pytest.fixture
def place(database: str) -> Iterator[Place]:
    with ExitStack() as stack:
        roles = Roles(database, stack)
        yield Place(roles, furnish(roles.owner, "payments.eu"), furnish(roles.owner, "mails"))


@pytest.fixture(params=list(WAYS))
def client(place: Place, request: pytest.FixtureRequest) -> Client:
    """An operator of ``payments.eu``, in each way in which one can be it."""
    return WAYS[request.param](place.roles)


def test_whatever_an_operator_can_call_is_tested_here(place: Place) -> None:
    callable_names = place.value("select rdq._capability_names('operator')")
    assert set(callable_names) == {*LOOKS, *ACTS, *HARMLESS}
    assert set(BULK) <= set(ACTS)
    overloads = "select count(*) from pg_proc where oid::regprocedure::text like 'rdq.redrive(%%'"
    payloads = {query.partition("::")[2][:5] for _, query in ACTS["redrive"]}
    assert len(payloads) == place.value(overloads)


def test_an_operator_sees_its_own_and_nothing_of_others(place: Place, client: Client) -> None:
    for name, queries in LOOKS.items():
        for query in queries:
            rows = client.ask(query, {})
            assert place.told_of(place.ours, rows), f"{name} shows nothing"
            assert not place.told_of(place.theirs, rows), f"{name} tells of others"


def test_what_is_counted_is_its_own(place: Place, client: Client) -> None:
    dead = place.value("select count(*) from rdq.dead where queue = 'payments.eu'")
    for counts in (
        "select sum(count)::bigint as count from rdq.dead_letter_groups()",
        "select sum(count)::bigint as count from rdq.dead_letter_timeline()",
        "select dead as count from rdq.queue_stats",
        "select dead as count from rdq.recent_queue_stats()",
        "select count(*) from rdq.dead_letters",
    ):
        assert client.ask(counts, {}) == [{"count": dead}], counts


def test_an_operator_acts_on_its_own_and_on_nothing_of_others(place: Place, client: Client) -> None:
    before = place.stored_of(place.theirs)
    for acts in ACTS.values():
        for code, query in acts:
            client.ask(query, asdict(place.ours))
            assert refusal(client, query, asdict(place.theirs))[0] == code, query
    assert place.stored_of(place.theirs) == before


def test_a_bulk_act_takes_all_of_its_own_and_nothing_of_others(
    place: Place, client: Client
) -> None:
    before = place.stored_of(place.theirs)
    place.roles.owner.execute("update rdq.lease set expires_at = now() where queue = 'payments.eu'")
    own = {
        "redrive_where": place.value("select count(*) from rdq.dead where queue = 'payments.eu'"),
        "purge_where": place.value("select count(*) from rdq.dead where queue = 'payments.eu'"),
        "cancel_where": place.value(
            "select count(*) from rdq.tasks where queue = 'payments.eu'"
            " and status in ('PENDING', 'IN_FLIGHT')"
        ),
        "reclaim": 1,
        "tick": 1,
    }
    for name, queries in BULK.items():
        for query in queries:
            [row] = client.ask(query, {})
            assert list(row.values()) == [own[name]], query
    for queries in BULK.values():
        client.ask(queries[-1], {}, keep=True)
    assert place.stored_of(place.theirs) == before


def test_what_may_not_be_seen_is_refused_in_the_words_for_what_does_not_exist(
    place: Place, client: Client
) -> None:
    nothing = uuid4()
    for acts in ACTS.values():
        for code, query in acts:
            if code == "RD003":
                unknown = dict.fromkeys(asdict(place.theirs), nothing)
                theirs = refusal(client, query, asdict(place.theirs))
                told = {str(value) for value in asdict(place.theirs).values()}
                assert mask(theirs, told) == mask(refusal(client, query, unknown), {str(nothing)})


def test_a_queue_that_may_not_be_acted_in_is_not_told_from_one_that_does_not_exist(
    place: Place, client: Client
) -> None:
    for query in ("select rdq.pause_queue(%(queue)s)", "select rdq.resume_queue(%(queue)s)"):
        theirs = refusal(client, query, {"queue": "mails"})
        assert mask(theirs, {"mails"}) == mask(refusal(client, query, {"queue": "none"}), {"none"})


def test_harmless_calls_tell_nothing_that_is_stored(place: Place, client: Client) -> None:
    for query in HARMLESS.values():
        assert not place.told_of(place.theirs, client.ask(query, {}))


def test_who_only_looks_is_told_that_acting_is_not_permitted(place: Place) -> None:
    role = place.roles.grant(place.roles.create("viewer"), "viewer", "payments.*")
    # It may call the functions, but acts in another queue.
    client = Client(place.roles.connect(place.roles.grant(role, "operator", "archive")))
    acting = [query for name in ("redrive", "cancel", "purge") for _, query in ACTS[name]]
    for query in acting:
        assert refusal(client, query, asdict(place.ours))[0] == "RD007", query
        assert refusal(client, query, asdict(place.theirs))[0] == "RD003", query


def test_a_member_that_does_not_inherit_has_no_right_until_it_takes_the_role(place: Place) -> None:
    connection, _ = gateway(place.roles)
    client = Client(connection)
    for queries in [*LOOKS.values(), *([query for _, query in acts] for acts in ACTS.values())]:
        for query in queries:
            assert refusal(client, query, asdict(place.ours))[0] == "42501", query


def test_what_it_does_not_inherit_does_not_add_to_its_own_right(place: Place) -> None:
    theirs = place.roles.grant(place.roles.create("theirs"), "operator", "mails")
    role = place.roles.create("ada", member_of=[theirs], inherit=False)
    client = Client(place.roles.connect(place.roles.grant(role, "operator", "payments.*")))
    for queries in LOOKS.values():
        for query in queries:
            assert not place.told_of(place.theirs, client.ask(query, {})), query
    assert refusal(client, "select rdq.purge(%(dead)s)", asdict(place.theirs))[0] == "RD003"


def test_one_connection_serves_one_role_after_the_other(place: Place) -> None:
    connection, ours = gateway(place.roles)
    theirs = ours.replace("rdq_test_ops_", "rdq_test_other_ops_")
    # With prepared statements, whose plans outlive the role; and after a request that failed.
    connection.prepare_threshold = 0
    for _ in range(7):
        for role, own, other in ((ours, "ours", "theirs"), (theirs, "theirs", "ours")):
            for local in (False, True):
                client = Client(connection, role, local)
                for query in LOOKS["dead_letters"] + LOOKS["tasks"]:
                    rows = client.ask(query, {})
                    assert place.told_of(getattr(place, own), rows)
                    assert not place.told_of(getattr(place, other), rows)
                with pytest.raises(psycopg.Error):
                    client.ask("select 1 / 0", {})
        assert refusal(Client(connection), "select * from rdq.dead_letters", {})[0] == "42501"


def test_a_right_that_is_taken_away_is_gone_at_once(place: Place) -> None:
    role = place.roles.grant(place.roles.create("ops"), "operator", "payments.*", "mails")
    client = Client(place.roles.connect(role))
    query = "select * from rdq.dead_letters"
    assert place.told_of(place.theirs, client.ask(query, {}))
    place.roles.grant(role, "operator", "payments.*")
    assert not place.told_of(place.theirs, client.ask(query, {}))
    place.roles.owner.execute("select rdq.revoke_access(%s, 'operator')", [role])
    assert refusal(client, query, {})[0] == "42501"


def test_a_function_of_an_operator_does_not_lend_its_queues(place: Place) -> None:
    role = place.roles.grant(place.roles.create("ops"), "operator", "payments.*")
    create = "create function public.lent() returns bigint language sql security definer "
    owner = place.roles.owner
    owner.execute(create.encode() + b"as 'select count(*) from rdq.dead_letters'")
    owner.execute(sql.SQL("alter function public.lent() owner to {}").format(sql.Identifier(role)))
    query = "select public.lent() as count"
    nobody = Client(place.roles.connect(place.roles.create("nobody")))
    assert nobody.ask(query, {}) == [{"count": 0}]
    assert Client(place.roles.connect(role)).ask(query, {})[0]["count"] > 0


def furnish(owner: psycopg.Connection[Any], queue: str) -> Holdings:
    """Create a queue in which something is everywhere; its name is in every text."""

    def value(query: str, *parameters: object) -> Any:
        row = owner.execute(query.encode(), parameters).fetchone()
        assert row
        return row[0]

    def submit(handler: str = "h", **options: object) -> UUID:
        given = "".join(f", {name} => %s" for name in options)
        query = f"select rdq.submit(%s, %s, %s::text{given})"
        return UUID(str(value(query, queue, handler, queue, *options.values())))

    def dead(handler: str = "h") -> UUID:
        return submit(handler, error=Jsonb({"type": "E", "message": "m", "class": "PERMANENT"}))

    def redrive(handler: str) -> UUID:
        """Begin a bulk redrive that will not come to its end here."""
        for _ in range(2):
            dead(handler)
        query = (
            "select redrive_id from rdq.redrive_where(%s, %s, per_second => 0.001, reason => %s)"
        )
        return UUID(str(value(query, queue, handler, queue)))

    value("select rdq.create_queue(%s)", queue)
    done = submit()
    claim = "from rdq.claim(array[%s], 'runner of ' || %s)"
    value(f"select rdq.complete(task_id, claim_token) {claim}", queue, queue)
    held = submit()
    value(f"select task_id {claim}", queue, queue)
    running, paused = redrive(f"{queue}.first"), redrive(f"{queue}.second")
    value("select rdq.pause_redrive(%s, %s)", paused, queue)
    value(
        "select rdq.set_endpoint(%s, 'h', %s, headers => %s)",
        queue,
        f"https://{queue}.example.org/",
        Jsonb({"X-Team": queue}),
    )
    value("select rdq.runner_seen(%s, %s, '1', queues => array[%s])", queue, queue, queue)
    value("select rdq.pause_queue(%s, %s)", queue, queue)
    waiting = submit(run_at="2999-01-01", dedupe_key=queue)
    # The last one is of one cause with that of the other queue.
    return Holdings(queue, dead(), waiting, held, done, running, paused)


def refusal(client: Client, query: str, values: Mapping[str, object]) -> tuple[str, str, str]:
    """Return how a request is refused: SQLSTATE, message and hint."""
    with pytest.raises(psycopg.Error) as caught:
        client.ask(query, values)
    diagnostics = caught.value.diag
    return (
        caught.value.sqlstate or "",
        diagnostics.message_primary or "",
        diagnostics.message_hint or "",
    )


def mask(texts: tuple[str, ...], words: set[str]) -> list[str]:
    """Put one word for all of these."""
    masked = list(texts)
    for word in words:
        masked = [text.replace(word, "…") for text in masked]
    return masked
