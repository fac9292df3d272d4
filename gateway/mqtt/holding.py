"""What a connection does while it waits: it is held because it publishes and the disk is low, or for the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from gateway.auth.topic_rights import PUBLISH, TopicRights
from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.conversation import Conversation
from gateway.mqtt.events import PublishRun
from gateway.mqtt.services import MqttServices
from gateway.mqtt.set_aside import SetAside
from gateway.net.protocol import Transport


class Awaited(Protocol):
    """What a connection waits for before it does anything more for its client."""

    on_over: Callable[[], None]

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for; `on_over` is called when that becomes so."""


class Holding(Conversation):
    """A connection that may be held."""

    __slots__ = ("_aside", "_awaited", "_claimed", "_topics", "_waiting_run")

    def __init__(self, door: MqttServices, transport: Transport, connection: MqttConnection) -> None:
        super().__init__(door, transport, connection)
        self._aside: SetAside | None = None  # while it is held, and until what was set aside is taken up
        self._awaited: Awaited | None = None  # what the steps under way, or its CONNACK, wait for
        self._claimed: bytes | None = None  # the client whose session the engine was asked for
        self._topics: TopicRights | None = None  # where a back end is asked about each topic
        self._waiting_run: PublishRun | None = None  # until it is known what may be done with its topics

    def _leave(self, now_ms: int) -> None:
        """Wait for nothing any more, and let go of the session."""
        self._awaited = self._waiting_run = None
        super()._leave(now_ms)
        claimed, self._claimed = self._claimed, None
        if claimed is not None:
            self._door.claims.release(claimed)

    def on_held(self) -> None:
        """Set aside what comes, and do not wait for what may not come."""
        super().on_held()
        if self._aside is None:
            self._aside = SetAside(self._door.aside, self._door.settings.packet_bytes_max)

    def on_released(self, now_ms: int) -> None:
        """Take up what was set aside, and wait for the peer again."""
        super().on_released(now_ms)
        if self._aside is not None and self._aside.has_left:
            self.transport.request_turn()
        else:
            self._aside = None

    def _set_aside(self, aside: SetAside, data: bytes, now_ms: int) -> bytes:
        """Set aside what came; return what is to be handled now."""
        dropped_count = aside.dropped_count
        data = aside.take(self._connection.take_tail() + data)
        if aside.dropped_count > dropped_count:
            self._door.metrics.refuse("quota_exceeded", aside.dropped_count - dropped_count)
        if aside.is_full:
            self.transport.hold_reading()
            self._connection.reassure(now_ms)
            self.transport.deadline_changed()
        self._forget_empty(aside)
        return data

    def _take_up(self, aside: SetAside) -> bytes:
        """Return what was set aside, if the connection is not held any more, or its peer has left."""
        data = aside.give_back()
        self._forget_empty(aside)
        return data

    def _forget_empty(self, aside: SetAside) -> None:
        if aside.is_over and not aside.has_left:
            self._aside = None

    def _must_ask(self, topics: TopicRights, run: PublishRun) -> bool:
        """Return whether a run of messages has to wait until a back end has said what may be done with its topics."""
        assert self.session is not None
        find, session = self._door.publishing.find_destination, self.session
        asking = topics.ask([(PUBLISH, find(topic, session)) for topic in run.columns.batch.topics])
        if asking is None:
            return False
        self._waiting_run = run
        self._await(asking)
        return True

    def _await(self, awaited: Awaited) -> None:
        """Do nothing more for the client until that is over; at most one more read is kept meanwhile."""
        if not awaited.is_over:
            self._awaited = awaited
            awaited.on_over = partial(self._go_on_after, awaited)

    def _go_on_after(self, awaited: Awaited) -> None:
        if self._awaited is awaited:
            self._awaited = None
            self.transport.resume_reading()
            self.transport.request_turn()
