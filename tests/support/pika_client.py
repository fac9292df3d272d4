"""pika's clients of a gateway that is killed under them."""

from __future__ import annotations

import pika
import pytest

PERSISTENT = pika.BasicProperties(delivery_mode=2)
OF_KILLED_PEERS = [
    pytest.mark.slow,
    pytest.mark.usefixtures("leaves_nothing"),
    # pika leaves sockets and timeouts of its own behind when its peer is killed
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def connect(gateway, blocked_s=20):
    """Return a connection that waits at most `blocked_s` where the gateway holds publishers back; None: for ever."""
    host, port = gateway.address("amqp")
    return pika.BlockingConnection(
        pika.ConnectionParameters(host, port, heartbeat=0, blocked_connection_timeout=blocked_s)
    )
