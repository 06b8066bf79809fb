"""Installing: three ways, one schema, no privileges."""

import re
from collections.abc import Callable

import psycopg
import pytest

from rdq_runner import schema
from rdq_runner.migrate import migrate
from tests.migrations.ways import WAYS, dump, with_yoyo


def test_the_three_ways_to_install_give_the_same_schema(new_database: Callable[[], str]) -> None:
    dumps = []
    for install in WAYS:
        dsn = new_database()
        install(dsn)
        dumps.append(dump(dsn))
    assert "CREATE TABLE rdq.task" in dumps[0]
    assert dumps[0] == dumps[1]
    assert dumps[0] == dumps[2]


@pytest.mark.parametrize("again", WAYS)
@pytest.mark.parametrize("install", WAYS)
def test_any_way_after_any_other_changes_nothing(
    bare: str, install: Callable[[str], None], again: Callable[[str], None]
) -> None:
    install(bare)
    first = dump(bare)
    again(bare)
    assert dump(bare) == first


def test_what_yoyo_has_applied_is_not_applied_again(bare: str) -> None:
    with_yoyo(bare)
    assert migrate(bare).steps == ()


def test_a_plain_role_installs_without_public_and_extensions(bare: str) -> None:
    migrate(bare)
    with psycopg.connect(bare) as connection:
        extensions = connection.execute("select extname from pg_extension").fetchall()
        schemas = connection.execute(
            "select nspname::text, pg_get_userbyid(nspowner)::text, rolsuper"
            " from pg_namespace join pg_roles on pg_roles.oid = nspowner"
            " where nspname !~ '^pg_|^information_schema$' order by nspname"
        ).fetchall()
    assert extensions == [("plpgsql",)]
    assert schemas == [("rdq", "rdq_owner", False), ("rdq_migrations", "rdq_owner", False)]


def test_install_sql_includes_every_file_once_and_the_steps_in_order() -> None:
    included = re.findall(r"^\\ir (\S+)$", (schema.SQL / "install.sql").read_text(), re.MULTILINE)
    steps = [f"../migrations/{path.name}" for path in sorted(schema.MIGRATIONS.glob("*.sql"))]
    functions = [path.name for path in schema.SQL.glob("*.sql") if path.name != "install.sql"]
    assert included[: len(steps)] == steps
    assert sorted(included[len(steps) :]) == sorted(functions)
