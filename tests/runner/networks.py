"""A network before a PostgreSQL server that can go silent without a word."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Network:
    """A proxy on the loopback.

    While it is silent nothing comes through and no connection ends: what is sent is taken, as by a
    peer whose kernel still acknowledges, and who connects gets no answer.
    """

    def __init__(self, dsn: str) -> None:
        target = conninfo_to_dict(dsn)
        host, port = str(target["host"]), int(str(target.get("port", 5432)))
        self._family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
        self._target = str(Path(host, f".s.PGSQL.{port}")) if host[0] == "/" else (host, port)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=self._server.getsockname()[1])
        self._lock = threading.Lock()
        self._silent = False
        self._ended = False
        self._ends: dict[socket.socket, socket.socket] = {}
        self._waiting: list[socket.socket] = []
        self._forgotten: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Forward."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended = True
            self._thread.join()
            for end in [self._server, *self._ends, *self._waiting, *self._forgotten]:
                end.close()

    @property
    def unanswered(self) -> int:
        """How many have connected since it is silent."""
        return len(self._waiting)

    def silence(self) -> None:
        """Let nothing through from now on."""
        with self._lock:
            self._silent = True

    def forget(self) -> None:
        """Let nothing through on the connections of now, for ever; new ones are as any."""
        with self._lock:
            self._forgotten += self._ends
            self._ends.clear()

    def restore(self) -> None:
        """Forward what has waited, and what comes."""
        with self._lock:
            self._silent = False
            for client in self._waiting:
                self._connect(client)
            self._waiting.clear()

    def _run(self) -> None:
        while not self._ended:
            sources = [self._server] if self._silent else [self._server, *self._ends]
            for source in select.select(sources, [], [], 0.01)[0]:
                with self._lock:
                    if source is self._server:
                        self._accept()
                    elif source in self._ends and not self._silent:
                        self._forward(source)

    def _accept(self) -> None:
        client, _ = self._server.accept()
        if self._silent:
            self._waiting.append(client)
        else:
            self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        server = socket.socket(self._family)
        try:
            server.connect(self._target)
        except OSError:
            server.close()
            client.close()
        else:
            self._ends |= {client: server, server: client}

    def _forward(self, source: socket.socket) -> None:
        target = self._ends[source]
        with suppress(OSError):
            if data := source.recv(65536):
                target.sendall(data)
                return
        for end in (source, target):
            del self._ends[end]
            end.close()
