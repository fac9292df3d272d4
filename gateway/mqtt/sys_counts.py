"""What the `$SYS` tree tells, with mosquitto's names. Messages are PUBLISH packets, and bytes those of their bodies."""

from __future__ import annotations

from core.broker import Broker
from core.metrics import DoorMetrics
from gateway.mqtt.session_table import SessionTable
from gateway.mqtt.subscribing import Subscribing
from gateway.process.memory import own_bytes


class SysCounts:
    """The counts of one door.

    Args:
        broker: Knows what is stored and retained.
        sessions: All sessions.
        subscribing: Knows how many subscriptions there are.
        metrics: The door's.
    """

    def __init__(self, broker: Broker, sessions: SessionTable, subscribing: Subscribing, metrics: DoorMetrics) -> None:
        self.expired = 0  # sessions that nobody came back to
        self._peak = 0
        self._memory_peak = 0  # of the looks at it
        self._broker = broker
        self._sessions = sessions
        self._subscribing = subscribing
        self._metrics = metrics

    def note_connections(self) -> None:
        """Take note of how many connections are open."""
        self._peak = max(self._peak, self._metrics.connections)

    def now(self) -> dict[str, int]:
        """Return all counts by topic."""
        metrics = self._metrics
        connected = metrics.connections
        away = self._sessions.idle_count
        stored, stored_bytes = self._stored()
        memory = own_bytes()
        self._memory_peak = max(self._memory_peak, memory)
        return {
            "clients/connected": connected,
            "clients/active": connected,
            "clients/disconnected": away,
            "clients/inactive": away,
            "clients/total": connected + away,
            "clients/maximum": self._peak,
            "clients/expired": self.expired,
            "heap/current": memory,
            "heap/maximum": self._memory_peak,
            "messages/received": metrics.messages_in,
            "messages/sent": metrics.messages_out,
            "messages/stored": stored,
            "store/messages/count": stored,
            "store/messages/bytes": stored_bytes,
            "publish/messages/received": metrics.messages_in,
            "publish/messages/sent": metrics.messages_out,
            "publish/messages/dropped": sum(metrics.dropped.values()),
            "publish/bytes/received": metrics.bytes_in,
            "publish/bytes/sent": metrics.bytes_out,
            "bytes/received": metrics.bytes_in,
            "bytes/sent": metrics.bytes_out,
            "subscriptions/count": self._subscribing.subscription_count,
            "shared_subscriptions/count": self._subscribing.sharing.group_count,
            "retained messages/count": len(self._broker.retained),
        }

    def growing(self) -> dict[str, int]:
        """Return the counts of which averages are told."""
        metrics = self._metrics
        return {
            "messages/received": metrics.messages_in,
            "messages/sent": metrics.messages_out,
            "publish/received": metrics.messages_in,
            "publish/sent": metrics.messages_out,
            "publish/dropped": sum(metrics.dropped.values()),
            "bytes/received": metrics.bytes_in,
            "bytes/sent": metrics.bytes_out,
            "sockets": metrics.connections_total,
            "connections": metrics.connections_total,
        }

    def _stored(self) -> tuple[int, int]:
        """Return how many messages the parent topic keeps, and the size of the log."""
        queue_ref = self._broker.find_queue(self._broker.parent_topic + b"/0")
        count = 0 if queue_ref < 0 else self._broker.max_offset(queue_ref) - self._broker.min_offset(queue_ref)
        return count, self._broker.figures().log_bytes
