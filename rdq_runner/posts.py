"""One POST over a connection of its own, and what may go wrong with it.

A connection that was kept open could be closed by the receiver just as the next request is written
to it: that would be AMBIGUOUS, and cost a task an attempt, where nothing but the connection failed.
And what is connected anew is checked anew.
"""

import errno
import re
import socket
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any, Final, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler
from yarl import URL

from rdq_runner import shortages
from rdq_runner.answers import BODY_BYTES, Exchange, Trouble
from rdq_runner.destinations import Destinations
from rdq_runner.names import Resolver, TooManyNames

_HEAD_BYTES: Final = 65_536
# RFC 9112, sections 4 and 5.
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: (.*))?")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")

_UNSENDABLE: Final = re.compile(r"[\x00-\x20\x7f]")

_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)


class DestinationRefused(OSError):
    """The runner does not allow this address. An OSError, so that a name's next one is tried."""


def tls_context() -> ssl.SSLContext:
    """Return what certificates are checked with: those that the system trusts.

    OpenSSL's variables SSL_CERT_FILE and SSL_CERT_DIR name others.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@dataclass(slots=True)
class _Post:
    exchange: Exchange
    host: str
    sockets: list[socket.socket] = field(default_factory=list)
    line: bytes = b""
    head_bytes: int = 0
    head_ended: bool = False
    interim: bool = False

    def read_head(self, data: bytes) -> None:
        """Note the status and the fields as soon as they are there, and interim answers not.

        aiohttp tells of them when all that came along with them is as it should be: a body that is
        longer than its length, or of bad chunks, would take the status with it.
        """
        self.head_bytes += len(data)
        if self.head_ended or self.head_bytes > _HEAD_BYTES:
            return
        self.line += data
        if b"\n" not in data:
            return
        *lines, self.line = self.line.split(b"\n")
        for line in lines:
            self._read_line(line.removesuffix(b"\r"))
            if self.head_ended:
                return

    def _read_line(self, line: bytes) -> None:
        if self.exchange.status is not None:
            found = _FIELD.fullmatch(line)
            if found:
                values = self.exchange.fields.setdefault(found[1].decode().lower(), [])
                values.append(found[2].decode("utf-8", "surrogateescape").strip())
            self.head_ended = not line
        elif found := _STATUS.fullmatch(line):
            status = int(found[1])
            # What is interim has fields, and an empty line, and then another status.
            if not 100 <= status < 200 or status == 101:
                self.exchange.status = status
                self.exchange.reason = (found[2] or b"").decode("latin-1")
            self.interim = self.exchange.status is None
        elif not self.interim and line:
            self.head_ended = True  # it is not HTTP


# Whose connection is opened. The one session of a client does not tell; what is done for a request
# is done in the context of who has made it.
_POST: Final[ContextVar[_Post]] = ContextVar("post")


class _Protocol(ResponseHandler):
    """Looks at what is received before aiohttp judges it."""

    def data_received(self, data: bytes) -> None:
        _POST.get().read_head(data)
        super().data_received(data)


class Client:
    """Sends requests, within an ``async with`` block of one event loop.

    :param destinations: where to connect to is allowed.
    :param tls: what certificates are checked with.
    """

    def __init__(self, destinations: Destinations, tls: ssl.SSLContext) -> None:
        self._destinations = destinations
        self._tls = tls
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_begin)
        connector = aiohttp.TCPConnector(
            force_close=True,
            limit=0,
            resolver=Resolver(),
            socket_factory=self._open_socket,
            ssl=self._tls,
            use_dns_cache=False,
        )
        # There is no public way to see the bytes; a test holds it to what it does.
        connector._factory = partial(_Protocol, loop=connector._loop)  # type: ignore[assignment]
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_TIMEOUT,
            trace_configs=[trace],
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(
        self, exchange: Exchange, url: str, fields: Mapping[str, str], payload: bytes
    ) -> None:
        """Send a request and take the beginning of its answer, both noted in the exchange.

        No redirect is followed, no cookie kept, no proxy used, no compression undone.

        :raises Exception: the exchange broke off; `trouble` explains it.
        """
        # A URL of ASCII is sent as it is written, because it may be signed.
        target = URL(url, encoded=url.isascii())
        if _UNSENDABLE.search(str(target)):
            raise ValueError("it has a blank or a control character")
        _POST.set(_Post(exchange, target.raw_host or ""))
        async with self._session.post(
            target, allow_redirects=False, data=BytesIO(payload), headers=fields
        ) as response:
            exchange.status = response.status
            exchange.reason = response.reason or ""
            exchange.fields.clear()
            for name, value in response.headers.items():
                exchange.fields.setdefault(name.lower(), []).append(value)
            while len(exchange.body) <= BODY_BYTES:
                chunk = await response.content.read(BODY_BYTES + 1 - len(exchange.body))
                exchange.body += chunk
                if not chunk:
                    exchange.body_ended = True
                    break

    def _open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        post = _POST.get()
        if refused := self._destinations.refusal(post.host, address[0]):
            post.exchange.refused = refused
            raise DestinationRefused(errno.EACCES, refused)
        post.exchange.address = _spelled(address)
        post.sockets.append(socket.socket(family, kind, protocol))
        return post.sockets[-1]


async def _begin(*_: object) -> None:
    # Right before the first byte; only the socket that is used is connected by now.
    post = _POST.get()
    post.exchange.sent = True
    for connected in post.sockets:
        try:
            post.exchange.address = _spelled(connected.getpeername())
        except OSError:
            continue


def own_trouble(error: Exception, exchange: Exchange) -> str | None:
    """Say why it was this runner that could not send, and not the task that could not be sent.

    Another runner may allow the address, and this one may have descriptors again in a while.
    None if the request began to be written, or it failed for another reason.
    """
    if exchange.sent:
        return None
    if exchange.refused and exchange.address is None:
        return exchange.refused
    if isinstance(error, TooManyNames) or isinstance(error.__cause__, TooManyNames):
        return "too many names are being looked up"
    return shortages.shortage(error)


def trouble(error: Exception, exchange: Exchange, timeout: float) -> Trouble:
    """Explain why an exchange broke off before there was a status.

    What failed before the request began to be written is TRANSIENT, whatever it was: trouble with
    TLS too, since certificates get renewed. Only a URL that cannot be called is PERMANENT: nothing
    changes until somebody changes it. No word of an answer is in the message: it may be a secret.

    :param timeout: the seconds that the exchange had.
    """
    match error:
        case TimeoutError() if exchange.sent:
            return Trouble("timeout", f"no answer within {timeout:g} s", "AMBIGUOUS")
        case aiohttp.ClientResponseError() if exchange.sent:
            return Trouble("garbled", "the answer is not HTTP", "AMBIGUOUS")
        case _ if exchange.sent:
            why = f"the connection was lost after the request was sent: {_words(error)}"
            return Trouble("lost", why, "AMBIGUOUS")
        case TimeoutError():
            return Trouble("connect_timeout", f"not connected within {timeout:g} s", "TRANSIENT")
        case aiohttp.ClientConnectorDNSError():
            why = f"the name {error.host!r} does not resolve: {_words(error.os_error)}"
            return Trouble("dns", why, "TRANSIENT")
        case aiohttp.ClientSSLError():
            return Trouble("tls", f"no trusted connection: {_words(error)}", "TRANSIENT")
        case aiohttp.ClientConnectorError():
            refused = error.os_error.errno == errno.ECONNREFUSED
            why = f"not connected: {_words(error.os_error)}"
            return Trouble("refused" if refused else "connect", why, "TRANSIENT")
        case ValueError():  # of yarl, aiohttp or a codec; one of TLS is not meant
            return Trouble("url", f"the URL cannot be called: {_words(error)}", "PERMANENT")
        case _:
            return Trouble("connect", f"not connected: {_words(error)}", "TRANSIENT")


def _spelled(address: tuple[Any, ...]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
