"""The RocketMQ door over a real store, with connections in memory and a clock that the test moves."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from core.broker import Broker
from core.metrics import Metrics
from core.settings import RetentionSettings, StoreSettings
from core.store.embedded import EmbeddedEngine
from core.store.message_store import MessageStore
from gateway.auth.authenticator import Authenticator
from gateway.net.protocol import Transport
from gateway.retention import Retention
from gateway.rocketmq.door import RocketmqDoor
from gateway.rocketmq.handler import RocketmqHandler
from gateway.settings.models import AuthSettings, RocketmqSettings, UserSettings
from lmq.remoting.commands import Command, decode_header
from lmq.remoting.frames import Frames, cut_frames
from lmq.remoting.message_codec import Record, decode_records
from lmq.remoting.response_codes import ResponseCode
from tests.support.engines import find_maker
from tests.support.logins import HandClock, HandWork
from tests.support.rocketmq import LOCALHOST, request_frame, send_frame
from tests.support.store import PromptFlush, flush_as_asked

NOW_MS = 1_790_000_000_000
ADDRESS = ("127.0.0.1", 10911)
SUBSCRIBED = 0x4
SUSPENDED = 0x2


class Parts(Protocol):
    """What a door is made of."""

    broker: Broker
    store: MessageStore
    authenticator: Authenticator


def make_door(
    parts: Parts, settings: RocketmqSettings | None = None, retention: Retention | None = None
) -> RocketmqDoor:
    """Return a door."""
    retention = retention or Retention(parts.store.retention, RetentionSettings())
    return RocketmqDoor(parts.broker, settings or RocketmqSettings(), parts.authenticator, retention)


class MemoryTransport(Transport):
    """What a handler writes, as bytes; whether there is room is the test's to say."""

    local_address = ADDRESS

    def __init__(self, conn_id: int) -> None:
        super().__init__()
        self.conn_id = conn_id
        self.peer = "127.0.0.1:10911"
        self.peer_host = LOCALHOST
        self.is_reading = True
        self.is_closed = False
        self.written = bytearray()
        self.turns = 0  # that were asked for
        self.share: int | None = None  # steps of work that it may do in a turn, None for any number
        self.steps = 0  # of them

    def is_share_over(self) -> bool:
        self.steps += 1
        return self.share is not None and self.steps >= self.share

    def fileno(self) -> int:
        return -1 if self.is_closed else self.conn_id

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def request_turn(self) -> None:
        self.turns += 1

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def deadline_changed(self) -> None:
        pass


class Peer:
    """One client of the door."""

    def __init__(self, site: DoorSite, conn_id: int, peer_host: bytes) -> None:
        self.site = site
        self.transport = MemoryTransport(conn_id)
        self.transport.peer_host = peer_host
        self.handler: RocketmqHandler = site.door.connect(self.transport)
        self.has_more = False
        self._opaque = 0

    def give(self, data: bytes) -> None:
        """Let bytes arrive, and the door work them off."""
        self.begin(data)
        while self.has_more:
            self.go_on()

    def begin(self, data: bytes) -> None:
        """Let bytes arrive, of which the door works off what its share of a turn is enough for."""
        self.transport.steps = 0
        self.has_more = bool(self.handler.on_data(data, self.site.now_ms))

    def go_on(self) -> None:
        """Let the door go on for another share."""
        self.transport.steps = 0
        self.has_more = bool(self.handler.go_on(self.site.now_ms))

    def end(self) -> None:
        """Let no more arrive; the peer reads on."""
        self.handler.on_eof(self.site.now_ms)

    def take(self) -> list[Command]:
        """Return the commands that were written since the last time."""
        data = bytes(self.transport.written)
        self.transport.written.clear()
        frames = Frames()
        found: list[Command] = []
        pos = 0
        while pos < len(data):
            pos = cut_frames(data, pos, frames, 1 << 26)
            found += [
                decode_header(
                    frames.header_type[i],
                    data[frames.header_start[i] : frames.header_end[i]],
                    data[frames.header_end[i] : frames.body_end[i]],
                )
                for i in range(frames.count)
            ]
        return found

    def ask(self, code: int, body: bytes = b"", **ext: object) -> Command:
        """Send a request and return the answer that came at once."""
        self._opaque += 1
        self.give(request_frame(code, body, opaque=self._opaque, **ext))
        self.site.turn()
        answers = [command for command in self.take() if command.is_response]
        assert len(answers) == 1, answers
        assert answers[0].opaque == self._opaque
        return answers[0]

    def send(self, body: bytes = b"hello", **changes: object) -> Command:
        """Send one message and return its answer."""
        self.give(send_frame(body, **changes))
        self.site.turn()
        (answer,) = self.take()
        return answer

    def start_pull(self, topic: str, offset: int = 0, **changes: object) -> None:
        """Send a pull without looking for its answer."""
        ext: dict[str, object] = {
            "consumerGroup": "g",
            "topic": topic,
            "queueId": 0,
            "queueOffset": offset,
            "maxMsgNums": 32,
            "sysFlag": SUBSCRIBED,
            "commitOffset": 0,
            "suspendTimeoutMillis": 15_000,
            "subscription": "*",
            "subVersion": 0,
        }
        self._opaque += 1
        self.give(request_frame(11, opaque=self._opaque, **(ext | changes)))

    def pull(self, topic: str, offset: int = 0, **changes: object) -> Command:
        """Pull and return the answer that came at once; as clients do, again where messages are on their way."""
        for _ in range(8):
            self.start_pull(topic, offset, **changes)
            answers = self.take()
            if not answers and not isinstance(self.site.engine, EmbeddedEngine):  # the queue is being opened
                self.site.turn()
                answers = self.take()
            (answer,) = answers
            if answer.code != ResponseCode.PULL_RETRY_IMMEDIATELY or not getattr(self.site.engine, "away", 0):
                break
            self.site.turn()
        return answer

    def close(self) -> None:
        """Lose the connection."""
        self.handler.on_closed(self.site.now_ms)


class DoorSite:
    """A store, a broker and the door; `turn` stands for the end of the loop's turn, with its flush.

    With `is_prompt` each commit begins as the gateway's own does: with the rows that are there when the first asks.
    """

    def __init__(
        self,
        folder: Path,
        settings: RocketmqSettings | None = None,
        *,
        anonymous: bool = True,
        users: dict[str, UserSettings] | None = None,
        make_engine=None,
        now_ms: int = NOW_MS,
        is_prompt: bool = False,
        **store: int,
    ) -> None:
        self.now_ms = now_ms
        self.store = MessageStore.open(folder, StoreSettings(**{"segment_bytes": 1 << 20, **store}), now_ms=self.now_ms)
        self.engine = find_maker(make_engine)(self.store, is_sync=True)
        self.broker = Broker(self.engine, parent_topic=b"LMQ_PARENT", metrics=Metrics())
        self.prompt = PromptFlush(self.store, self.engine.durability, lambda: None) if is_prompt else None
        self.checks = HandWork()
        auth = AuthSettings(rocketmq_anonymous=anonymous, users=users or {})
        self.authenticator = Authenticator(auth, {}, HandClock(lambda: self.now_ms), self.checks)
        self.retention = Retention(self.store.retention, RetentionSettings())
        self.door = make_door(self, settings, self.retention)
        self._count = 0

    def connect(self, peer_host: bytes = LOCALHOST) -> Peer:
        """Return a new client."""
        self._count += 1
        return Peer(self, self._count, peer_host)

    def set_free(self, free_bytes: int) -> None:
        """Let the disk have so much room."""
        self.broker.room.note(free_bytes, is_full=False, now_ms=self.now_ms)

    def turn(self) -> None:
        """Run the readers, and a flush."""
        self.door.delays.deliver_due(self.now_ms)
        self.door.transactions.look(self.now_ms)
        deadline_ms = self.broker.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.now_ms:
            self.broker.handle_timer(self.now_ms)
        self.settle()

    def open_queues(self) -> None:
        """Let the engine know where all queues end."""
        if not isinstance(self.engine, EmbeddedEngine):
            self.engine.open_all()

    def settle(self) -> None:
        """Run the readers, and a flush, until nothing is on its way."""
        while True:
            self.broker.run_turn(self.now_ms)
            if self.prompt is None:
                flush_as_asked(self.store, self.engine.durability)
            else:
                self.prompt.settle()
            if isinstance(self.engine, EmbeddedEngine) or not (self.engine.is_busy or self.broker.has_work):
                break

    def close(self) -> None:
        """Close the store."""
        if self.prompt is not None:
            self.prompt.let_go()
        self.store.close()


def records_of(answer: Command) -> list[Record]:
    """Return the records of a pull's answer."""
    return list(decode_records(bytes(answer.body)))


def bodies_of(answer: Command) -> list[bytes]:
    """Return the bodies of a pull's answer."""
    return [record.body for record in records_of(answer)]
