"""Where callbacks may connect to: by default the public internet, and nothing inside.

What is judged is the address that a socket is about to be connected to. A name, however often it is
resolved and to whatever, and any spelling of an address, has become one by then.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Written out, because what `ipaddress` takes for global differs between patch releases of Python.
_INNER: Final[dict[str, tuple[Network, ...]]] = {
    kind: tuple(ip_network(network) for network in networks.split())
    for kind, networks in {
        "unspecified": "0.0.0.0/8 ::/128",
        "loopback": "127.0.0.0/8 ::1/128",
        # Where clouds keep their credentials: 169.254.169.254.
        "link-local": "169.254.0.0/16 fe80::/10",
        "multicast": "224.0.0.0/4 ff00::/8",
        "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
        "shared by a carrier's customers": "100.64.0.0/10",
        "reserved": "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24"
        " 203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20",
    }.items()
}
_PUBLIC_IPV6: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")

# What the name of a host never opens: only a network does.
_NETWORK_ONLY: Final = frozenset({"unspecified", "link-local", "multicast"})

_NAME: Final = re.compile(r"(?=.{1,253}$)(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*")


@dataclass(frozen=True)
class Destinations:
    """What is allowed besides the public internet: networks, and hosts by their name in a URL."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "Destinations":
        """Read entries such as ``127.0.0.0/8``, ``10.1.2.3``, ``fd00::/8``, ``app.internal``.

        An entry may hold several, separated by commas or blanks, as a variable does.

        :raises ValueError: an entry is neither a network nor the name of a host.
        """
        networks: list[Network] = []
        hosts: set[str] = set()
        for entry in (part for text in entries for part in re.split(r"[\s,]+", text) if part):
            network = _network(entry)
            name = entry.lower().rstrip(".")
            if network:
                networks.append(network)
            elif _NAME.fullmatch(name) and re.search("[a-z]", name.rpartition(".")[2]):
                hosts.add(name)
            else:
                raise ValueError(
                    f"{entry!r} is not a destination: give a network such as 10.0.0.0/8, an"
                    " address, or the name of a host"
                )
        return cls(tuple(networks), frozenset(hosts))

    def refusal_of_url(self, url: str) -> str | None:
        """Say why nothing may be sent to a URL; None if it may, or if that is only known later.

        Only a URL with an address in it can be judged by itself.
        """
        try:
            host = urlsplit(url).hostname or ""
            ip_address(host)
        except ValueError:
            return None
        return self.refusal(host, host)

    def refusal(self, host: str, address: str) -> str | None:
        """Say why nothing may be sent to an address; None if it may.

        :param host: as the URL names it.
        :param address: what a socket is about to be connected to.
        """
        target, kind = _judged(address)
        if kind is None or any(target in network for network in self.networks):
            return None
        if kind not in _NETWORK_ONLY and host.lower().rstrip(".") in self.hosts:
            return None
        spelled = "" if str(target) == address else f" (that is {target})"
        return f"the address {address}{spelled} is {kind}, and this runner does not allow it"


def effective(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address stands for, where it stands for one.

    IPv4-mapped and -compatible (RFC 4291, section 2.5.5), NAT64 (RFC 6052), 6to4 (RFC 3056).
    """
    if isinstance(address, IPv4Address):
        return address
    address = IPv6Address(int(address))  # without a zone
    if inner := address.ipv4_mapped or address.sixtofour:
        return inner
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


@lru_cache(maxsize=1024)
def _judged(address: str) -> tuple[Address, str | None]:
    target = effective(ip_address(address))
    return target, _kind(target)


def _kind(address: Address) -> str | None:
    for kind, networks in _INNER.items():
        if any(address in network for network in networks):
            return kind
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        return "reserved"
    return None


def _network(entry: str) -> Network | None:
    try:
        # Not strict: 10.1.2.3/8 is what people write.
        network = ip_network(entry, strict=False)
    except ValueError:
        return None
    # An entry is compared with effective addresses, so it has to be one.
    low = effective(network.network_address)
    if isinstance(network, IPv6Network) and isinstance(low, IPv4Address) and network.prefixlen > 96:
        return IPv4Network((low, network.prefixlen - 96))
    return network
