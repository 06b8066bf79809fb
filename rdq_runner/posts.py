"""One POST over a connection of its own, and what may go wrong with it.

A connection that was kept open could be closed by the receiver just as the next request is written
to it: that would be AMBIGUOUS, and cost a task an attempt, where nothing but the connection failed.
And what is connected anew is checked anew.
"""

import errno
import socket
import ssl
from collections.abc import Mapping
from io import BytesIO
from types import SimpleNamespace
from typing import Any, Final

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


async def post(
    exchange: Exchange,
    url: str,
    fields: Mapping[str, str],
    payload: bytes,
    *,
    destinations: Destinations,
    tls: ssl.SSLContext,
) -> None:
    """Send a request and take the beginning of its answer, both noted in the exchange.

    No redirect is followed, no cookie kept, no proxy used, no compression undone.

    :raises Exception: the exchange broke off; `trouble` explains it.
    """
    # A URL of ASCII is sent as it is written, because it may be signed.
    target = URL(url, encoded=url.isascii())
    sockets: list[socket.socket] = []

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        if refused := destinations.refusal(target.raw_host or "", address[0]):
            exchange.refused = refused
            raise DestinationRefused(errno.EACCES, refused)
        exchange.address = _spelled(address)
        sockets.append(socket.socket(family, kind, protocol))
        return sockets[-1]

    async def begin(*_: object) -> None:
        # Right before the first byte; only the socket that is used is connected by now.
        exchange.sent = True
        for connected in sockets:
            try:
                exchange.address = _spelled(connected.getpeername())
            except OSError:
                continue

    trace = aiohttp.TraceConfig(SimpleNamespace)
    trace.on_request_headers_sent.append(begin)
    connector = aiohttp.TCPConnector(
        force_close=True,
        resolver=aiohttp.ThreadedResolver(),
        socket_factory=open_socket,
        ssl=tls,
        use_dns_cache=False,
    )
    async with (
        aiohttp.ClientSession(
            auto_decompress=False,
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_TIMEOUT,
            trace_configs=[trace],
            trust_env=False,
        ) as session,
        session.post(
            target, allow_redirects=False, data=BytesIO(payload), headers=fields
        ) as response,
    ):
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
