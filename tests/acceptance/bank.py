"""The bank that the payments of the story are sent to: down until it opens."""

import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Self
from uuid import UUID


class Bank(socketserver.ThreadingTCPServer):
    """An HTTP server on a port of 127.0.0.1.

    The port is bound from the beginning, so nobody else gets it; but nobody listens, so connections
    are refused.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request, bind_and_activate=False)
        self.paid: list[UUID] = []
        self._thread = threading.Thread(target=self.serve_forever, args=[0.05], daemon=True)
        self.server_bind()

    @property
    def port(self) -> int:
        """Where it takes payments."""
        return int(self.server_address[1])

    def open(self) -> None:
        """Take connections from now on."""
        self.server_activate()
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()


class _Request(BaseHTTPRequestHandler):
    """Takes a payment."""

    server: Bank

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paid.append(UUID(self.headers["Idempotency-Key"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing."""
