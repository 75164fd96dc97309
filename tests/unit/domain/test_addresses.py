"""Which addresses are those of the public internet."""

import pytest

from notify_queue.domain.addresses import is_public

PRIVATE = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:192.0.0.9",
    "::ffff:224.0.0.1",
    "::ffff:0:127.0.0.1",
    "200::1",
    "3fff::1",
    "4000::1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_what_leads_inside_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "3ffe::1", "::ffff:8.8.8.8"]
)
def test_what_anybody_can_reach_is(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("name", ["localhost", "", "127.1", "2130706433", "0x7f.1"])
def test_a_name_is_no_address(name: str) -> None:
    with pytest.raises(ValueError, match="does not appear"):
        is_public(name)
