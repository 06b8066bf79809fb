"""J2: what an address is, however it is spelled, decides whether it may be connected to."""

import pytest

from rdq_runner.destinations import Destinations

NOTHING_INSIDE = Destinations()


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("10.0.0.1", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "shared"),
        ("100.127.255.255", "shared"),
        ("192.0.0.192", "reserved"),
        ("198.18.0.1", "reserved"),
        ("203.0.113.9", "reserved"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("fe80::1%lo", "link-local"),
        ("fd00:ec2::254", "private"),
        ("fc00::1", "private"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "reserved"),
        ("2001:0:53aa:64c:0:7fff:f5ff:fffe", "reserved"),  # Teredo
        ("64:ff9b:1::7f00:1", "reserved"),  # NAT64 of a local prefix
        ("::ffff:0:7f00:1", "reserved"),  # IPv4-translated
        ("4000::1", "reserved"),
        # What only stands for an address inside:
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:a9fe:a9fe", "link-local"),
        ("::ffff:10.0.0.1", "private"),
        ("::127.0.0.1", "loopback"),
        ("::10.0.0.1", "private"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:7f00:1::", "loopback"),
        ("2002:0a00:0001::1", "private"),
        ("2002:a9fe:a9fe::1", "link-local"),
    ],
)
def test_nothing_inside_is_allowed_unless_somebody_says_so(address: str, kind: str) -> None:
    refusal = NOTHING_INSIDE.refusal("example.com", address)
    assert refusal
    assert refusal.startswith(f"the address {address}")
    assert f" is {kind}" in refusal


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ],
)
def test_the_public_internet_is_allowed(address: str) -> None:
    assert NOTHING_INSIDE.refusal("example.com", address) is None


@pytest.mark.parametrize(
    ("entry", "allowed", "refused"),
    [
        ("127.0.0.0/8", "127.3.2.1", "10.0.0.1"),
        ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
        ("10.1.2.3/16", "10.1.255.255", "10.2.0.0"),
        ("::1", "::1", "127.0.0.1"),
        ("fd00::/8", "fd12::1", "fc00::1"),
        ("fe80::/10", "fe80::1%lo", "fd00::1"),
        ("::ffff:10.0.0.0/104", "10.9.9.9", "192.168.0.1"),
        ("169.254.169.254", "169.254.169.254", "169.254.169.253"),
    ],
)
def test_a_network_opens_what_is_in_it(entry: str, allowed: str, refused: str) -> None:
    destinations = Destinations.parse([entry])
    assert destinations.refusal("example.com", allowed) is None
    assert destinations.refusal("example.com", refused)


def test_a_host_opens_what_its_name_resolves_to_but_not_where_credentials_are() -> None:
    destinations = Destinations.parse(["App.Internal."])
    assert destinations.refusal("app.internal", "10.0.0.1") is None
    assert destinations.refusal("APP.internal.", "127.0.0.1") is None
    assert destinations.refusal("other.internal", "10.0.0.1")
    assert destinations.refusal("app.internal", "169.254.169.254")
    assert destinations.refusal("app.internal", "0.0.0.0")


def test_a_variable_holds_several_with_commas_or_blanks_between() -> None:
    destinations = Destinations.parse(["10.0.0.0/8, ::1", "localhost\t192.168.0.0/16"])
    assert len(destinations.networks) == 3
    assert destinations.hosts == {"localhost"}


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/33", "999.1.1.1", "2130706433", "10.0.0", "http://a", "a:80", "*", "-a.b"]
)
def test_what_is_no_destination_is_refused_by_its_name(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a destination"):
        Destinations.parse([entry])
