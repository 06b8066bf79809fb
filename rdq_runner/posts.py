"""One POST over a connection of its own, and what may go wrong with it.

A connection that was kept open could be closed by the receiver just as the next request is written
to it: that would be AMBIGUOUS, and cost a task an attempt, where nothing but the connection failed.
And what is connected anew is checked anew.
"""

import errno
import socket
import ssl
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, Self

import aiohttp
from yarl import URL

from rdq_runner.answers import BODY_BYTES, Exchange, Trouble
from rdq_runner.destinations import Destinations

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


# Whose connection is opened. The one session of a client does not tell; what is done for a request
# is done in the context of who has made it.
_POST: Final[ContextVar[_Post]] = ContextVar("post")


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
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(
                force_close=True,
                limit=0,
                resolver=aiohttp.ThreadedResolver(),
                socket_factory=self._open_socket,
                ssl=self._tls,
                use_dns_cache=False,
            ),
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
        _POST.set(_Post(exchange, target.raw_host or ""))
        async with self._session.post(
            target, allow_redirects=False, data=BytesIO(payload), headers=fields
        ) as response:
            exchange.status = response.status
            exchange.reason = response.reason or ""
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


def trouble(error: Exception, exchange: Exchange, timeout: float) -> Trouble:
    """Explain why an exchange broke off before there was a status.

    What failed before the request began to be written is TRANSIENT, whatever it was: trouble with
    TLS too, since certificates get renewed. Only a URL that cannot be called, and an address that
    may not be, are PERMANENT: nothing changes until somebody changes it.

    :param timeout: the seconds that the exchange had.
    """
    match error:
        case TimeoutError() if exchange.sent:
            return Trouble("timeout", f"no answer within {timeout:g} s", "AMBIGUOUS")
        case aiohttp.ClientResponseError() if exchange.sent:
            return Trouble("garbled", f"the answer is not HTTP: {error.message}", "AMBIGUOUS")
        case _ if exchange.sent:
            why = f"the connection was lost after the request was sent: {_words(error)}"
            return Trouble("lost", why, "AMBIGUOUS")
        case _ if exchange.refused and exchange.address is None:
            return Trouble("destination", exchange.refused, "PERMANENT")
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
