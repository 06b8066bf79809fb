"""The receipt service that the shop's handlers call: down until it is started."""

import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Self


class ReceiptService(socketserver.ThreadingTCPServer):
    """An HTTP server on a port of 127.0.0.1.

    The port is bound from the beginning, so nobody else gets it; but nobody listens, so connections
    are refused.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request, bind_and_activate=False)
        self.receipts: dict[str, bytes] = {}
        self._thread = threading.Thread(target=self.serve_forever, args=[0.05], daemon=True)
        self.server_bind()

    @property
    def url(self) -> str:
        """Where it takes receipts."""
        return f"http://127.0.0.1:{self.server_address[1]}/receipts"

    def start(self) -> None:
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
    """Keeps one receipt a key, however often it is sent: execution is at least once."""

    server: ReceiptService

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.receipts.setdefault(self.headers["Idempotency-Key"], body)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Leave the screen to the story."""
