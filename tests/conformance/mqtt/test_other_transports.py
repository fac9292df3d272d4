"""Clauses over WebSocket and TLS, in each run; `make conformance` holds the door to all of them over both."""

from __future__ import annotations

import pytest

from tests.conformance.mqtt import test_errors, test_ping_and_disconnect

HELD = [
    test_errors.test_packet_that_breaks_a_rule_ends_the_connection_that_it_came_on,
    test_errors.test_close_follows_a_code_from_0x80,
    test_ping_and_disconnect.test_ping_is_answered,
    test_ping_and_disconnect.test_nothing_is_sent_after_a_disconnect_but_the_close,
    test_ping_and_disconnect.test_what_comes_right_before_a_disconnect_is_answered_before_the_close,
    test_ping_and_disconnect.test_disconnect_discards_the_will,
]


@pytest.fixture(params=["ws", "tls"])
def transport(request):
    return request.param


globals().update({clause.__name__: clause for clause in HELD})
