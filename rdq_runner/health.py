"""Serves ``/metrics``, ``/healthz`` and ``/readyz`` over HTTP.

The server is the standard library's with Prometheus's own application. What a client can do to it
is bounded: so many connections at once, each for so many seconds, and none holds up a shutdown. Nor
does one that is slow keep another out: who comes when there is no room takes the place of the
one that has been sending its request, or reading the answer, for the longest time. And scrapes, for
which the database is asked, never have all the room.
"""

import io
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from rdq_runner.leases import Leases
from rdq_runner.logs import say
from rdq_runner.loop import Loop
from rdq_runner.sessions import Database

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MOST_CONNECTIONS: Final = 16
MOST_SCRAPES: Final = 8
REQUEST_SECONDS: Final = 10.0
SOCKET_SECONDS: Final = 5.0

_ANSWERED: Final = "rdq.answered"

# Three times as long as the claims ever go without a call to the database.
LATELY_SECONDS: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Health:
    """Whether the runner lives, and whether it gets work done."""

    threads: Mapping[Loop, threading.Thread]
    claims: Loop
    leases: Leases
    database: Database
    max_unreported: int

    def ailments(self) -> list[str]:
        """Return why the process should be replaced: threads of it have ended."""
        if not self.threads:
            return ["not started"]
        return [f"{t.name} has ended" for t in self.threads.values() if not t.is_alive()]

    def hindrances(self) -> list[str]:
        """Return why the runner takes no work now, though another process might not either."""
        found = self.ailments()
        if self.claims.stopping.is_set():
            found.append("stopping")
        if self.database.out:
            found.append("database unavailable")
        worked_at = self.claims.worked_at
        if worked_at is None:
            found.append("has not claimed yet")
        elif (silent := time.monotonic() - worked_at) > LATELY_SECONDS:
            found.append(f"no answer to a claim for {silent:.0f} s")
        if (pending := len(self.leases.finished())) >= self.max_unreported:
            found.append(f"{pending} reports pending")
        return found


class HealthServer:
    """The HTTP server, in threads that do not keep the process alive.

    :param address: to bind to; port 0 takes one that is free.
    :raises OSError: the address is not this machine's, or is in use.
    """

    def __init__(
        self, address: str, port: int, registry: CollectorRegistry, health: Health
    ) -> None:
        self._server = _server_class(address, port)((address, port), _Request)
        self._server.set_app(_application(registry, health))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="rdq-health", daemon=True
        )

    def start(self) -> None:
        """Serve."""
        self._thread.start()
        say(logging.INFO, "metrics are served", address=self._server.server_name, port=self.port)

    def stop(self) -> None:
        """Serve no more."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


def _application(registry: CollectorRegistry, health: Health) -> "WSGIApplication":
    metrics: WSGIApplication = make_wsgi_app(registry)
    scrapes = threading.BoundedSemaphore(MOST_SCRAPES)
    checks: dict[str, Callable[[], list[str]]] = {
        "/healthz": health.ailments,
        "/readyz": health.hindrances,
    }

    def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        try:
            if path == "/metrics":
                if scrapes.acquire(blocking=False):
                    try:
                        return metrics(environ, start_response)
                    finally:
                        scrapes.release()
                status, problems = HTTPStatus.SERVICE_UNAVAILABLE, ["too many scrapes at once"]
            elif path not in checks:
                status, problems = HTTPStatus.NOT_FOUND, ["/metrics, /healthz and /readyz are here"]
            else:
                problems = checks[path]()
                status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        except Exception as error:  # a scrape is no reason to fail anybody else's
            say(logging.ERROR, "request failed", path=path, error_type=type(error).__name__)
            status, problems = HTTPStatus.INTERNAL_SERVER_ERROR, [type(error).__name__]
        finally:
            environ[_ANSWERED]()
        body = json.dumps({"ok": status is HTTPStatus.OK, "problems": problems}).encode() + b"\n"
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return application


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(self, *arguments: Any) -> None:
        # Since when; and of these, the ones for which an answer is made.
        self._open: dict[socket.socket, float] = {}
        self._asked: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def server_bind(self) -> None:
        # HTTPServer asks the resolver for its own name, which may take long and is of no use.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                slowest = next((r for r in self._open if r not in self._asked), None)
                if slowest is None:
                    return False
                del self._open[slowest]
                _hang_up(slowest)
            self._open[request] = time.monotonic()
            return True

    def asked(self, request: socket.socket) -> None:
        """Note that a client has sent its request."""
        with self._lock:
            if request in self._open:
                self._asked.add(request)

    def answered(self, request: socket.socket) -> None:
        """Note that the answer is there, for the client to read."""
        with self._lock:
            self._asked.discard(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
            self._asked.discard(request)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections whose time is over: a timeout of the socket is one for each byte."""
        super().service_actions()
        with self._lock:
            for request, since in self._open.items():
                if time.monotonic() - since > REQUEST_SECONDS:
                    _hang_up(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client went away, or was too slow


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Request(WSGIRequestHandler):
    timeout = SOCKET_SECONDS

    def parse_request(self) -> bool:
        sound = super().parse_request()
        if sound:
            self._place.asked(self.connection)
        return sound

    def get_environ(self) -> "WSGIEnvironment":
        answered = partial(self._place.answered, self.connection)
        return {**super().get_environ(), _ANSWERED: answered}

    @property
    def _place(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass  # one line a scrape would drown the others

    def get_stderr(self) -> Any:
        return io.StringIO()  # for tracebacks of clients that went away


def _server_class(address: str, port: int) -> type[_Server]:
    [(family, *_), *_] = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    return _Server6 if family == socket.AF_INET6 else _Server


def _hang_up(request: socket.socket) -> None:
    with suppress(OSError):  # it may have ended by itself
        request.shutdown(socket.SHUT_RDWR)
