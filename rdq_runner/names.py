"""Looks up the names of hosts, each in a thread of its own.

A name server that does not answer holds a thread for half a minute and more. So there is one thread
for each name that is being looked up, which all who want to know it share: a dead name server stops
the endpoints that need it, and no other.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

MOST: Final = 200
"""So many names are looked up at once."""


class TooManyNames(OSError):
    """So many look-ups are under way that another one has to wait: the runner's own trouble."""


class Resolver(AbstractResolver):
    """Resolves names with the system's means, for one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[tuple[str, int, int], asyncio.Future[list[ResolveResult]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        :raises OSError: it has none, or nobody knows; `TooManyNames` if it was not asked for.
        """
        key = (host, port, int(family))
        found = self._under_way.get(key)
        if found is None:
            if len(self._under_way) >= MOST:
                raise TooManyNames(f"{MOST} names are being looked up")
            loop = asyncio.get_running_loop()
            found = loop.create_future()
            # A daemon: a look-up that hangs must not hold up the end of the process.
            arguments = (loop, found, host, port, family)
            try:
                threading.Thread(target=_look_up, args=arguments, daemon=True).start()
            except RuntimeError as error:
                raise TooManyNames("no thread can be started to look up a name") from error
            self._under_way[key] = found
            found.add_done_callback(lambda _: self._under_way.pop(key))
        # Who gives up waiting must not spoil it for the others.
        return await asyncio.shield(found)

    async def close(self) -> None:
        """Look-ups that are under way end by themselves."""


def _look_up(
    loop: asyncio.AbstractEventLoop,
    found: "asyncio.Future[list[ResolveResult]]",
    host: str,
    port: int,
    family: socket.AddressFamily,
) -> None:
    answer: list[ResolveResult] | BaseException
    try:
        answer = _addresses(host, port, family)
    except BaseException as error:
        answer = error

    def tell() -> None:
        if not found.done():
            if isinstance(answer, BaseException):
                found.set_exception(answer)
                found.exception()  # nobody may wait for it any more
            else:
                found.set_result(answer)

    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(tell)


def _addresses(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    infos = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, family=family, flags=socket.AI_ADDRCONFIG
    )
    # With the zone of a link-local address (RFC 4007, section 11) where there is one.
    numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
    return [
        ResolveResult(
            hostname=host,
            host=socket.getnameinfo(address, numeric)[0],
            port=port,
            family=found_family,
            proto=protocol,
            flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
        )
        for found_family, _, protocol, _, address in infos
    ]
