"""Names of light queues for AMQP queues that end with their users.

The store keeps the name of a light queue for good. A queue that ends with its connection, its last consumer or its
lease is likely to come again under another name, as reply queues of clients do. So such a queue
has a light queue by number, and the next such queue gets that number when it is gone.

Source: docs/protocols/amqp.md, "Queues".
"""

from __future__ import annotations

from core.lmq.queue_name import amqp_passing_name


class PassingNames:
    """The light queues by number of one virtual host; there are as many as were in use at one time."""

    def __init__(self, vhost: bytes) -> None:
        self._vhost = vhost
        self._free: list[bytes] = []
        self._count = 0

    def take(self) -> bytes:
        """Return a name that no queue has."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return amqp_passing_name(self._vhost, self._count)

    def give_back(self, name: bytes) -> None:
        """Let the next queue have a name."""
        self._free.append(name)
