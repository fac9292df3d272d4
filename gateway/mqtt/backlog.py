"""What a session is sent before and beside its subscriptions: unacknowledged messages again, retained ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from gateway.mqtt.session import Session, Subscription


class RetainedWalk:
    """The retained messages of one filter, on their way to a session, as one SUBSCRIBE asked for them.

    Args:
        matches: Topic and record of each.
        qos: The QoS granted.
        subscription: Whose they are.
        due_until: What `Session.retained_due` says of the subscription, 0 where nothing.
        is_again: They may have been sent before. What was stored from `due_until` on is left out then, the
            subscription is given it; so is what is in flight.
    """

    __slots__ = ("due_until", "in_flight", "is_again", "matches", "qos", "subscription")

    def __init__(
        self,
        matches: Iterator[tuple[bytes, bytes]],
        qos: int,
        subscription: Subscription,
        due_until: int,
        *,
        is_again: bool = False,
    ) -> None:
        self.matches = matches
        self.qos = qos
        self.subscription = subscription
        self.due_until = due_until
        self.is_again = is_again
        inflight = subscription.session.retained_inflight
        self.in_flight = frozenset(inflight.values()) if is_again and inflight else frozenset()

    def is_wanted(self, record: bytes, physical_offset: int) -> bool:
        """Return whether a record that matches is to be sent."""
        return not self.is_again or (physical_offset < self.due_until and record not in self.in_flight)


class Backlog:
    """One session's."""

    __slots__ = ("is_queued", "resend_from", "resend_until", "retained", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.resend_from = 0
        self.resend_until = 0
        self.retained: deque[RetainedWalk] = deque()
        self.is_queued = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return not self.retained and self.resend_from >= self.resend_until
