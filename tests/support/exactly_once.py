"""A publisher at QoS 2, power cuts and waiting copies, for the tests of what is taken and sent exactly once."""

from __future__ import annotations

from contextlib import contextmanager

from core.lmq.queue_name import mqtt_queue_name
from core.properties import WAITING_FOR, encode_properties
from core.queues.crossroads import Lead
from core.schedule.slots import encode_due
from tests.support.mqtt import publish, pubrel
from tests.support.mqtt_door import World
from tests.support.simulated_disk import SimulatedDisk, cut_power


def restart(world):
    world.close()
    world.open()


class AlsoLater:
    """A crossroad whose messages go on, and wait somewhere, too."""

    def __init__(self, world, name):
        self.timer = world.broker.timer
        self.name = name

    def lead(self, route_properties, properties, flag, born_ms):
        return Lead((self.name,), ("later",), self.hold)

    def hold(self, waits, now_ms):
        due_ms, queue_id = self.timer.admit(now_ms + 3_600_000, now_ms)
        return [self.timer.route(queue_id, encode_properties([(WAITING_FOR, b"later")]) + encode_due(due_ms))]


def let_copies_wait(world):
    """Have each message to `t` come to another topic later, too."""
    name = mqtt_queue_name(b"t")
    world.broker.detours.crossroads.add(world.broker.find_queue(name), AlsoLater(world, name))


class ExactPublisher:
    """A publisher that sends messages again, and frees identifiers, as the standard says to the letter."""

    def __init__(self, world):
        self.open = {}  # packet identifier -> body, without a PUBREC so far
        self.received = set()
        self.number = 0
        self.connect(world)

    def connect(self, world):
        """Send again what is not complete, in its order."""
        self.peer = world.client(b"p", clean=False)
        for packet_id in list(self.received):
            self.peer.send(pubrel(packet_id))
        for packet_id, body in list(self.open.items()):
            self.peer.send(publish(b"t", body, qos=2, packet_id=packet_id, dup=True))
        self.take()

    def publish(self, count):
        packets = []
        for _ in range(count):
            self.number += 1
            packet_id = next(i for i in range(1, 100) if i not in self.open and i not in self.received)
            self.open[packet_id] = b"%d" % self.number
            packets.append(publish(b"t", self.open[packet_id], qos=2, packet_id=packet_id))
        self.peer.send(*packets)
        self.take()

    def release(self, _=0):
        for packet_id in list(self.received):
            self.peer.send(pubrel(packet_id))
        self.take()

    def take(self):
        for packet in self.peer.take():
            packet_id = int.from_bytes(packet[2:4], "big")
            if packet[0] == 0x50:
                del self.open[packet_id]
                self.received.add(packet_id)
            else:
                assert packet[0] == 0x70
                self.received.discard(packet_id)


@contextmanager
def ended_by_power_cut(tmp_path, wins):
    """Give a world that ends by a power cut; what it leaves, see `cut_power`, is in `after` of `tmp_path`."""
    (tmp_path / "before").mkdir()
    disk = SimulatedDisk(tmp_path / "before")
    with disk.watching():
        world = World(disk.root / "data")
        yield world
        cut_power(world, disk, tmp_path / "after", wins)


LEFT = {"neither": ("nothing",), "the log": ("commitlog/",), "the journal": ("journals/mqtt_exact",)}
