"""An MQTT door over a real store, with connections in memory and a clock that is a number."""

from __future__ import annotations

import os

from core.broker import Broker
from core.metrics import Metrics
from core.settings import StoreSettings
from core.store.message_store import MessageStore
from gateway.auth.authenticator import Authenticator
from gateway.mqtt.door import MqttDoor
from gateway.net.protocol import Transport
from gateway.settings.models import AuthSettings, MqttSettings
from tests.support import mqtt
from tests.support.engines import find_maker
from tests.support.full_definitions import set_room_for_definitions
from tests.support.logins import HandClock, HandWork
from tests.support.store import PromptFlush, flush_as_asked

NOW_MS = 1_790_000_000_000
MACHINE_START = 7  # a gateway that is killed is started again on the same machine
STORE = StoreSettings(segment_bytes=1024 * 1024)


class MemoryTransport(Transport):
    """A connection whose other end is a test."""

    local_address = ("127.0.0.1", 1_883)

    def __init__(self, conn_id):
        super().__init__()
        self.conn_id = conn_id
        self.peer = f"127.0.0.1:{40_000 + conn_id}"
        self.peer_host = b"\x7f\0\0\1" + (40_000 + conn_id).to_bytes(4, "big")
        self.is_reading = True
        self.is_held = False
        self.is_closed = False
        self.sent = bytearray()
        self.share = None  # steps of work that it may do in a turn, None for any number
        self.steps = 0  # of them
        self.wants_turn = False
        self.has_left = False  # the handler left some of what it was given, and goes on when reading is resumed

    def request_turn(self):
        self.wants_turn = True

    def is_share_over(self):
        self.steps += 1
        return self.share is not None and self.steps >= self.share

    def fileno(self):
        return -1 if self.is_closed else self.conn_id

    def write(self, data):
        if not self.is_closed:
            self.sent += data

    def close(self):
        self.is_closed = True

    abort = finish = part = close

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True
        self.wants_turn |= self.has_left
        self.has_left = False

    def hold_reading(self):
        self.is_held = True

    def release_reading(self):
        self.is_held = False

    def deadline_changed(self):
        pass


class DoorPeer:
    """A client of a door, over a connection in memory."""

    def __init__(self, world, transport, handler):
        self.world = world
        self.transport = transport
        self.handler = handler
        world.peers.append(self)

    def write(self, *data):
        """Send bytes in one piece, and let the door work them off."""
        self.begin(*data)
        self.world.turn()
        return self

    def begin(self, *data):
        """Send bytes in one piece, of which the door works off what its share of a turn is enough for."""
        self.transport.steps = 0
        self._wait(has_more=self.handler.on_data(b"".join(data), self.world.now_ms))

    def _wait(self, *, has_more):
        if has_more and self.transport.is_reading:
            self.world.waiting.append(self)
        self.transport.has_left = has_more and not self.transport.is_reading

    def go_on(self):
        """Let the door go on for another share."""
        self.transport.steps = 0
        if not self.is_closed:
            self._wait(has_more=self.handler.go_on(self.world.now_ms))

    def end(self, *data):
        """Send bytes and then no more, reading on."""
        self.begin(*data)
        while self in self.world.waiting:
            self.world.step()
        self.handler.on_eof(self.world.now_ms)
        self.world.turn()
        return self

    def vanish(self):
        """Lose the connection."""
        self.transport.is_closed = True
        self.handler.on_closed(self.world.now_ms)
        self.world.turn()

    def stall(self):
        self.transport.is_writable = False

    def drain(self):
        self.transport.is_writable = True
        self.handler.on_writable(self.world.now_ms)
        self.world.turn()

    @property
    def is_closed(self):
        return self.transport.is_closed


class Peer(DoorPeer):
    """A client of the MQTT door; what it is sent is taken with `take`."""

    def send(self, *packets):
        return self.write(*packets)

    def take(self):
        """Return the packets that came since the last time."""
        packets = mqtt.cut(bytes(self.transport.sent))
        self.transport.sent.clear()
        return packets

    def take_deliveries(self):
        return [mqtt.parse_publish(one) for one in self.take() if one[0] >> 4 == 3]

    def bodies(self):
        return [delivery.body for delivery in self.take_deliveries()]


class World:
    """A store, its broker and an MQTT door; `kill` and `open` make a new process of it.

    With `is_prompt` each commit begins as the gateway's own does: with the rows that are there when the first asks.
    """

    def __init__(
        self,
        data_dir,
        *,
        is_sync=True,
        store_settings=STORE,
        auth=None,
        make_engine=None,
        is_prompt=False,
        **settings,
    ):
        self.is_prompt = is_prompt
        self.make_engine = find_maker(make_engine)
        self.data_dir = data_dir
        self.now_ms = NOW_MS
        self.is_sync = is_sync
        self.flushes_by_itself = True
        self.settings = MqttSettings(**settings)
        self.store_settings = store_settings
        self.auth = AuthSettings(**(auth or {}))
        self.conn_id = 0
        self.open()

    def open(self):
        self.store = MessageStore.open(self.data_dir, self.store_settings, now_ms=self.now_ms)
        self.metrics = Metrics()
        self.engine = self.make_engine(self.store, is_sync=self.is_sync)
        self.broker = Broker(
            self.engine,
            parent_topic=self.store_settings.parent_topic.encode(),
            metrics=self.metrics,
        )
        self.broker.lasting_endings.begin(MACHINE_START, self.now_ms)
        self.is_turn_due = self.is_flush_due = False
        self.waiting = []  # peers whose input waits for their share of a turn
        self.peers = []  # all
        self.broker.schedule = self._schedule
        self.engine.durability.request_flush = self._request_flush
        self.prompt = None
        if self.is_prompt:
            self.prompt = PromptFlush(self.store, self.engine.durability, self._request_flush)
        self.checks = HandWork()
        self.authenticator = self.make_authenticator()
        self.door = MqttDoor(self.broker, self.settings, self.authenticator)
        self.door.start(self.now_ms)
        self.counts = self.metrics.door("mqtt")
        self.start_others()
        self.door.on_started(self.now_ms)
        self.turn()

    def start_others(self):
        """Start other doors, where the world has some."""

    def make_authenticator(self):
        return Authenticator(self.auth, os.environ, HandClock(lambda: self.now_ms), self.checks)

    def _schedule(self):
        self.is_turn_due = True

    def _request_flush(self):
        self.is_flush_due = True

    def set_free(self, free_bytes, *, is_full=False):
        """Let the disk have so much room."""
        self.broker.room.note(free_bytes, is_full=is_full, now_ms=self.now_ms)
        self.turn()

    def set_room_for_definitions(self, has_room, *, is_stuck=False):
        """Let the disk have room for what is written down, or for no more than what is deleted, or for nothing."""
        set_room_for_definitions(self.store, has_room, is_stuck=is_stuck)

    def turn(self):
        """Run turns and flushes until nothing is due."""
        while (
            self.waiting
            or self.is_turn_due
            or (self.is_flush_due and self.flushes_by_itself)
            or any(peer.transport.wants_turn for peer in self.peers)
        ):
            self.step()

    def is_awaiting(self, peer):
        """Return whether a client waits for what the engine is to tell, or goes on after it in the next turn."""
        return peer.transport.wants_turn or bool(getattr(self.engine, "is_busy", False))

    def step(self):
        """Do what is due in one turn: a share for each peer that waits, the broker's turn, a flush."""
        waiting, self.waiting = self.waiting, []
        waiting += [peer for peer in self.peers if peer.transport.wants_turn and peer not in waiting]
        for peer in waiting:
            peer.transport.wants_turn = False
            peer.go_on()
        if self.is_turn_due:
            self.is_turn_due = False
            self.broker.run_turn(self.now_ms)
        if self.is_flush_due and self.flushes_by_itself:
            self.flush()

    def flush(self):
        self.is_flush_due = False
        if self.prompt is None:
            flush_as_asked(self.store, self.engine.durability)
        else:
            self.prompt.flush()

    def connect(self, client_id=b"c", **options):
        """Return a client with its CONNACK still to be taken."""
        return self.dial().send(mqtt.connect(client_id, **options))

    def client(self, client_id=b"c", *filters, **options):
        """Return a client that is connected and subscribed, its answers taken."""
        peer = self.connect(client_id, **options)
        if filters:
            peer.send(mqtt.subscribe(1, *filters))
        packets = peer.take()
        assert packets[0][:2] == b"\x20\x02"
        assert packets[0][3] == 0
        return peer

    def dial(self):
        self.conn_id += 1
        transport = MemoryTransport(self.conn_id)
        return Peer(self, transport, self.door.connect(transport))

    def close(self):
        if self.prompt is not None:
            self.prompt.let_go()
        self.store.close()
