"""One cause has one fingerprint, in whichever database: whatever its collation says of letters."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rdq_runner.migrate import migrate
from tools.template import OWNER, acting_as_owner, drop

# By the provider that the server must have; libc is always there.
LOCALES = {
    "libc": ["locale 'C'", "locale 'C.UTF-8'"],
    "icu": [
        "locale 'C' locale_provider icu icu_locale 'tr-TR'",
        "locale 'C.UTF-8' locale_provider icu icu_locale 'de-DE-u-co-phonebk'",
    ],
    "builtin": ["locale 'C' locale_provider builtin builtin_locale 'PG_UNICODE_FAST'"],
}
PROVIDERS = {
    "libc": "true",
    "icu": "exists (select from pg_collation where collname = 'und-x-icu')",
    "builtin": "current_setting('server_version_num')::integer >= 180000",
}
MESSAGES = (
    "no route to HOST İstanbul-İ42 after 17 ms",
    "can't read 'naïve' or «ß» of Straße 12, ID 0xDEADBEEF",
    "пользователь 4711 не найден: `имя`",
    "user 550e8400-e29b-41d4-a716-446655440000 TITLE I\u0131i",
)
QUERY = """
select array_agg(rdq.fingerprint('h', 'Error', m.message) order by m.place)
from unnest(%s::text[]) with ordinality m (message, place)
"""


@pytest.fixture
def names(server: psycopg.Connection[Any]) -> Iterator[list[str]]:
    """A database for each locale of each provider that the server was built with."""
    created: list[str] = []
    for provider, locales in LOCALES.items():
        [(has_it,)] = server.execute(f"select {PROVIDERS[provider]}".encode()).fetchall()
        for locale in locales if has_it else []:
            name = f"rdq_test_{uuid4().hex}"
            statement = (
                f"create database {{}} owner {{}} template template0 encoding 'UTF8' {locale}"
            )
            parts = sql.Identifier(name), sql.Identifier(OWNER)
            server.execute(sql.SQL(statement).format(*parts))
            created.append(name)
    yield created
    for name in created:
        drop(server, name)


def test_fingerprints_are_equal_in_databases_of_every_collation(
    names: list[str], server_dsn: str
) -> None:
    seen: list[list[str]] = []
    for name in names:
        dsn = acting_as_owner(make_conninfo(server_dsn, dbname=name))
        migrate(dsn)
        with psycopg.connect(dsn) as connection:
            row = connection.execute(QUERY.encode(), [list(MESSAGES)]).fetchone()
        assert row
        seen.append(row[0])
    assert len(seen) >= 3
    assert len(set(seen[0])) == len(MESSAGES)
    assert seen == [seen[0]] * len(seen)
