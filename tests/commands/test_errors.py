"""What goes wrong is said in a line or two, with an exit status that scripts can use."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import make_conninfo

from rdq_runner.cli import main
from tests.commands.dead import Dead
from tests.commands.tree import ASKING
from tests.conftest import Connection


def invoke(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(main, words, env=variables)


@pytest.mark.parametrize("words", [["queue", "list"], ["dlq", "groups", "--json"], ["top"]])
def test_a_database_that_is_away_is_an_error_without_a_traceback(words: list[str]) -> None:
    done = invoke(*words, RDQ_DSN="host=127.0.0.1 port=1 password=hunter2")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert "Connection refused" in done.stderr
    assert "hunter2" not in done.output
    assert done.stdout == ""
    assert isinstance(done.exception, SystemExit)


def test_a_database_without_the_schema_is_told_apart(server_dsn: str) -> None:
    done = invoke("queue", "list", RDQ_DSN=make_conninfo(server_dsn, dbname="postgres"))
    assert done.exit_code == 1
    assert "there is no rdq in this database: run rdq-runner migrate" in done.stderr


@pytest.fixture
def viewer(db: Connection) -> Iterator[str]:
    """A role that may look at one queue."""
    role = f"rdq_viewer_{uuid4().hex}"
    db.execute(f"create role {role}".encode())
    db.execute("select rdq.grant_access(%s, 'viewer', array['payments'])", [role])
    yield role
    db.execute(f"drop owned by {role}; drop role {role}".encode())


def test_a_role_sees_its_queues_and_is_told_what_it_may_not(
    database: str, dead: Dead, viewer: str
) -> None:
    dead.letters(2)
    dead.letters(3, queue="mails")
    variables = {"RDQ_DSN": database, "PGOPTIONS": f"-c role={viewer}"}
    seen = invoke("dlq", "list", "--jsonl", **variables)
    assert len(seen.stdout.splitlines()) == 2
    for words in (
        ["dlq", "purge", "--all", "--yes"],
        ["dlq", "redrive", "--queue", "payments", "--yes"],
        ["queue", "pause", "payments"],
    ):
        refused = invoke(*words, **variables)
        assert refused.exit_code == 1
        assert "permission denied" in refused.stderr
        assert "Traceback" not in refused.output
    assert dead.count() == 2


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_two_forms_at_once_are_refused_before_anything_is_asked(path: tuple[str, ...]) -> None:
    context = ASKING[path].make_context(path[-1], [], resilient_parsing=True)
    needed = [
        {"uuid": str(uuid4())}.get(parameter.type.name, "x")
        for parameter in context.command.params
        if parameter.param_type_name == "argument" and parameter.required
    ]
    done = invoke(*path, *needed, "--json", "--jsonl", RDQ_DSN="host=127.0.0.1 port=1")
    assert done.exit_code == 2
    assert "give one of --json and --jsonl" in done.stderr


def test_a_file_gives_the_connection_and_its_runner_is_of_no_concern(
    database: str, dead: Dead, tmp_path: Path
) -> None:
    file = tmp_path / "rdq.toml"
    file.write_text(f'dsn = "{database}"\n[runner]\nqueues = {{ x = 1 }}\nname = "y"\nlease = 9\n')
    assert "payments" in invoke("queue", "list", "--config", str(file)).stdout
    assert "payments" in invoke("queue", "show", "payments", RDQ_CONFIG=str(file)).stdout
    file.write_text("dsn = 1")
    assert invoke("queue", "list", "--config", str(file)).exit_code == 1


def test_a_variable_that_is_nearly_the_actor_is_warned_of(database: str, dead: Dead) -> None:
    done = invoke("queue", "list", RDQ_DSN=database, RDQ_ACTER="jane")
    assert "RDQ_ACTER does nothing: did you mean RDQ_ACTOR?" in done.stderr


def test_an_argument_that_is_no_text_is_an_error(database: str) -> None:
    done = invoke("dlq", "list", "--queue", "\udcff", RDQ_DSN=database)
    assert done.exit_code == 1
    assert "is not text" in done.stderr
    assert isinstance(done.exception, SystemExit)
