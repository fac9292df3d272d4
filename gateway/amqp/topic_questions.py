"""What a back end is asked about topics before a connection's publishes and bindings, and the wait for its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.lmq.topic_space import topic_from_routing_key
from core.reserved import OWN_ROOTS
from gateway.amqp.events import Event, MethodCame, PublishRun
from gateway.amqp.exchanges import AMQ_TOPIC
from gateway.amqp.publishing import Publisher
from gateway.auth.topic_rights import PUBLISH, Asking, TopicRights, Wanted
from gateway.net.protocol import Transport

ROUNDS_MAX = 8  # tries of one method; each asks what the try before did not get to

_AMQ_TOPIC = AMQ_TOPIC.encode()


class TopicQuestions:
    """Those of one connection, where a back end let its user in that is asked about topics.

    Args:
        transport: The connection's, which is not read meanwhile.
    """

    __slots__ = ("_event", "_rounds", "_transport", "is_waiting", "kept")

    def __init__(self, transport: Transport) -> None:
        self.is_waiting = False  # an event waits; nothing else is done for the connection
        self.kept = b""  # what was read all the same
        self._transport = transport
        self._event: Event | None = None  # that was asked for last
        self._rounds = 0

    def keeps(self, data: bytes) -> bool:
        """Keep what was read while an event waits; return whether one does."""
        if self.is_waiting:
            self.kept += data
            self._transport.pause_reading()
        return self.is_waiting

    def take_kept(self) -> bytes:
        """Return what was kept, once."""
        kept, self.kept = self.kept, b""
        return kept

    def must_wait(self, topics: TopicRights, run: PublishRun, publisher: Publisher) -> bool:
        """Return whether a run has to wait, and ask for its topics; once, whatever becomes of that."""
        if run is not self._event and publisher.has_topic_space:
            self._event = run
            if self._wait(topics.ask(find_topics(run), keeps=run.channel.transaction is not None)):
                return True
        self._event = None
        publisher.look_anew()  # what it remembers of topics does not outlive the back end's answers
        return False

    def try_again(self, topics: TopicRights | None, event: Event) -> MethodCame | None:
        """Return what was refused, where that may be for want of an answer, which is asked for now; else None."""
        if topics is None or not isinstance(event, MethodCame):
            return None
        is_first = event is not self._event
        unknown = topics.take_unknown()
        self._rounds = 1 if is_first else self._rounds + 1
        if not unknown or self._rounds > ROUNDS_MAX:
            self._event = None
            return None
        self._event = event
        return event if self._wait(topics.ask(unknown, is_more=not is_first)) else None

    def _wait(self, asking: Asking | None) -> bool:
        if asking is None or asking.is_over:
            return asking is not None
        self.is_waiting = True
        self._transport.pause_reading()
        asking.on_over = self._go_on
        return True

    def _go_on(self) -> None:
        self.is_waiting = False
        self._transport.resume_reading()
        self._transport.request_turn()


def find_topics(run: PublishRun) -> Iterator[Wanted]:
    """Give what is to be asked before a run may be published: the topics of its keys, where they have any."""
    for i, raw in enumerate(run.batch.topics):
        key_at = 1 + raw[0]
        if raw[1:key_at] == _AMQ_TOPIC:
            yield from _wanted([raw[key_at + 1 :], *run.copies.get(i, ())])


def _wanted(keys: Iterable[bytes]) -> Iterator[Wanted]:
    for key in keys:
        topic = topic_from_routing_key(key)
        if topic and not topic.startswith(OWN_ROOTS):
            yield PUBLISH, topic
