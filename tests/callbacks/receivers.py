"""A server for callbacks that can do to its clients whatever servers do."""

import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.client import parse_headers
from io import BufferedReader
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import NamedTuple, cast


class Request(NamedTuple):
    """What arrived, and when by the wall clock."""

    line: str
    fields: Message
    body: bytes
    at: float


Behaviour = Callable[[Request, socket.socket], None]


@dataclass
class Receiver:
    """Listens on the loopback; `behave` answers, with whatever it likes."""

    behave: Behaviour
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    port: int = 0
    reads_bodies: bool = True

    def __post_init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}/hook"

    @contextmanager
    def running(self) -> Iterator["Receiver"]:
        """Serve; what still hangs at the end is let go."""
        receiver = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                receiver.connections += 1
                # Clients hang up in the middle of everything.
                with suppress(OSError):
                    receiver._serve(cast(socket.socket, self.request))

        class Server(ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 128

        with Server((self.host, self.port), Handler) as server:
            self.port = server.server_address[1]
            thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
            thread.start()
            try:
                yield self
            finally:
                self.ended.set()
                server.shutdown()
                thread.join()

    def hang(self, request: Request, connection: socket.socket) -> None:
        """Answer nothing, until the client or the test ends."""
        while not self.ended.is_set() and not select.select([connection], [], [], 0.02)[0]:
            pass

    def _serve(self, connection: socket.socket) -> None:
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_side=True)
        elif connection.recv(1, socket.MSG_PEEK) == b"\x16":
            connection.sendall(b"HTTP/1.1 400 This Is No TLS\r\n\r\n")
            return
        with connection, connection.makefile("rb") as stream:
            request = _read(stream, self.reads_bodies)
            self.requests.append(request)
            self.behave(request, connection)


def answer(status: int | str, *fields: str, body: bytes = b"") -> Behaviour:
    """Answer with a status, fields such as ``Retry-After: 1``, and a body."""
    lines = [f"HTTP/1.1 {status} Said So", f"Content-Length: {len(body)}", *fields, "", ""]

    def behave(request: Request, connection: socket.socket) -> None:
        connection.sendall("\r\n".join(lines).encode("latin-1") + body)

    return behave


def raw(data: bytes) -> Behaviour:
    """Answer these bytes, and close."""

    def behave(request: Request, connection: socket.socket) -> None:
        connection.sendall(data)

    return behave


def in_parts(parts: Sequence[bytes]) -> Behaviour:
    """Answer these bytes, each part in a segment of its own, and close."""

    def behave(request: Request, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
            time.sleep(0.1)

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Behave in one way after the other; the last one stays."""
    left = list(behaviours)

    def behave(request: Request, connection: socket.socket) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(request, connection)

    return behave


def close(request: Request, connection: socket.socket) -> None:
    """Read the request, and hang up."""


def reset(request: Request, connection: socket.socket) -> None:
    """Read the request, and have the connection reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def drip_status(request: Request, connection: socket.socket) -> None:
    """Send the status so slowly that it never ends."""
    connection.sendall(b"HTTP/1.1 200 ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def drip(request: Request, connection: socket.socket) -> None:
    """Send a byte of the answer's head now and then, for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def drip_body(request: Request, connection: socket.socket) -> None:
    """Send the head at once, and a byte of the body now and then, for ever."""
    connection.sendall(b"HTTP/1.1 404 Gone\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"1\r\nx\r\n")
        time.sleep(0.02)


def flood(request: Request, connection: socket.socket) -> None:
    """Send a body without end, as fast as it goes."""
    connection.sendall(b"HTTP/1.1 500 Oops\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65536)


@contextmanager
def refusing() -> Iterator[str]:
    """Give a URL at which connections are refused."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


@contextmanager
def unanswering() -> Iterator[str]:
    """Give a URL at which nobody answers to a connection, as behind a firewall that drops."""
    with ExitStack() as stack:
        bound = stack.enter_context(socket.socket())
        bound.bind(("127.0.0.1", 0))
        bound.listen(0)
        # With its backlog full, the system answers no more.
        for _ in range(2):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(bound.getsockname())
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


def _read(stream: BufferedReader, with_body: bool) -> Request:
    line = stream.readline().decode("latin-1").rstrip("\r\n")
    fields = parse_headers(stream)
    body = stream.read(int(fields["content-length"])) if with_body else b""
    return Request(line, fields, body, time.time())
