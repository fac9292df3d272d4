from __future__ import annotations

import pytest

from gateway.auth.credentials import Credentials, Refusal


@pytest.mark.parametrize(("peer", "host"), [("192.0.2.7:5", "192.0.2.7"), ("[::1]:1883", "[::1]"), ("unix:", "unix")])
def test_host_is_the_peer_without_its_port(peer, host):
    assert Credentials("mqtt", None, None, peer).host == host


def test_refusals_that_pass_are_told_apart():
    assert [refusal for refusal in Refusal if refusal.is_busy] == [Refusal.BUSY, Refusal.DOWN]
