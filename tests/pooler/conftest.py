"""A PgBouncer of the test's own, before the test's database."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.waiting import wait_until
from tools.postgres import PORT_ATTEMPTS, free_ports

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Pooler:
    """PgBouncer in a folder of its own; it refuses root, so that root runs it as postgres."""

    def __init__(self, dsn: str, mode: str, size: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rdq-pooler-", dir="/tmp"))
        for port in free_ports(PORT_ATTEMPTS):
            self._start(port, dsn, mode, size)
            try:
                wait_until(lambda: self._process.poll() is not None or self._answers())
                # Somebody else may take a free port before it does.
                assert self._process.poll() is None or "in use" in self.log, self.log
            except BaseException:
                self.stop()
                raise
            if self._process.poll() is None:
                return
        self.stop()
        raise AssertionError("no port was free for long enough")

    def _start(self, port: int, dsn: str, mode: str, size: int) -> None:
        target = conninfo_to_dict(dsn)
        self.dsn = make_conninfo(
            host="127.0.0.1", port=port, dbname=target["dbname"], user=target.get("user")
        )
        self._admin = make_conninfo(self.dsn, dbname="pgbouncer")
        server = " ".join(f"{name}='{value}'" for name, value in target.items())
        file = self.folder / "pgbouncer.ini"
        file.write_text(
            f"""
            [databases]
            {target["dbname"]} = {server}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {port}
            unix_socket_dir =
            auth_type = any
            admin_users = {target.get("user")}
            pool_mode = {mode}
            default_pool_size = {size}
            max_client_conn = 200
            """.replace("\n            ", "\n")
        )
        user: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        assert PROGRAM
        with (self.folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                [PROGRAM, file], stdout=log, stderr=log, cwd=self.folder, **user
            )

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text()

    def show(self, what: str) -> list[dict[str, Any]]:
        """Return what its console shows, such as ``servers``."""
        with psycopg.connect(
            self._admin, autocommit=True, cursor_factory=psycopg.ClientCursor
        ) as console:
            cursor = console.execute(f"show {what}".encode())
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def freeze(self) -> None:
        """Answer nobody from now on, and end no connection."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it, and leave nothing behind."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self.folder)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


StartPooler = Callable[[str, int], Pooler]


@pytest.fixture
def start_pooler(database: str) -> Iterator[StartPooler]:
    if not PROGRAM:
        pytest.skip("there is no pgbouncer: apt-get install pgbouncer")
    with ExitStack() as stack:

        def start(mode: str, size: int) -> Pooler:
            pooler = Pooler(database, mode, size)
            stack.callback(pooler.stop)
            return pooler

        yield start


@pytest.fixture
def pooler(start_pooler: StartPooler) -> Pooler:
    """Transaction pooling with two connections to the server."""
    return start_pooler("transaction", 2)
