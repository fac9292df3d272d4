"""Fixtures for pytest: `lmq_broker`, a gateway for the whole session, and `lmq_url`, its AMQP URL.

A test that wants a broker of its own, or other settings, opens a `lmq.testing.Broker` itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lmq.testing import Broker


@pytest.fixture(scope="session")
def lmq_broker() -> Iterator[Broker]:
    """Yield a running gateway, the same for all tests of the session."""
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def lmq_url(lmq_broker: Broker) -> str:
    """Return the AMQP URL of `lmq_broker`."""
    return lmq_broker.amqp_url
