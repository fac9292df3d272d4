"""A queue of the type stream in a virtual host, read from any place, beside a model that has all that came to it."""

from __future__ import annotations

from datetime import UTC, datetime

from pamqp.commands import Basic, Queue

from tests.support.amqp_ending import EndingQueues
from tests.support.amqp_host import deaths_of, number_of

STREAM = "s0"
ROOM = 1_000  # more than a life has messages
OFFSET = "x-stream-offset"


class StreamQueues(EndingQueues):
    """Has a stream, and readers that begin anywhere in it."""

    def declare_all(self):
        self.declare_stream()
        super().declare_all()
        self.bind(STREAM)

    def declare_stream(self):
        method = Queue.Declare(queue=STREAM, durable=True, arguments={"x-queue-type": "stream"})
        answer = self.ok(method, Queue.DeclareOk)
        assert answer.message_count == 0
        self.oracle.streams[STREAM] = []

    def delete_stream(self):
        """Delete it, and declare another, which has nothing."""
        self.note("delete", STREAM)
        self.ok(Queue.Delete(queue=STREAM), Queue.DeleteOk)
        self.oracle.delete_stream(STREAM)
        self.declare_stream()
        self.bind(STREAM)
        self.settle()

    @staticmethod
    def read_from(world, start, then=None):
        """Return what a reader has that begins there; `then` is done once it has begun."""
        peer = world.client()
        peer.send(Basic.Qos(prefetch_count=ROOM))
        peer.consume(STREAM, "r", arguments={} if start is None else {OFFSET: start})
        found = peer.messages()
        if then is not None:
            then()
            found += peer.messages()
        peer.vanish()
        return found

    def read_stream(self):
        """Read it from all places of some kinds: each reading is an end of the whole."""
        self.note("read", STREAM)
        whole = self.check_stream(self.world, self.oracle.streams[STREAM])
        if not whole:
            return
        assert self.bodies_from("last") == bodies_of(whole[-1:])
        first = self.chance.randrange(len(whole))
        assert self.bodies_from(offset_of(whole[first])) == bodies_of(whole[first:])
        assert self.bodies_from(offset_of(whole[-1]) + 1) == []
        moments = [one.stored_ms // 1_000 for one in self.oracle.streams[STREAM]]
        second = self.chance.choice(moments) + self.chance.choice([0, 0, 1])
        count = sum(one >= second for one in moments)
        assert self.bodies_from(datetime.fromtimestamp(second, UTC)) == bodies_of(whole[len(whole) - count :])

    def bodies_from(self, start):
        return bodies_of(self.read_from(self.world, start))

    def read_next(self):
        """Have readers that begin with what comes next, and publish."""
        before = len(self.oracle.streams[STREAM])
        self.note("read next of", STREAM)
        found = self.read_from(self.world, self.chance.choice([None, "next"]), self.publish)
        if not self.oracle.is_open:
            check_same(found, self.oracle.streams[STREAM][before:])

    def check_stream(self, world, expected):
        """Return all that a stream has, which is what is expected, each message at an offset of its own."""
        whole = self.read_from(world, "first")
        offsets = [offset_of(one) for one in whole]
        assert offsets == sorted({*offsets})
        check_same(whole, expected)
        return whole

    def adopt_stream(self, before, confirmed):
        """Go on with what a stream has behind a step that was torn: all that it had, and what came in the step."""
        whole = self.read_from(self.world, "first")
        had, came = before.streams[STREAM], self.oracle.streams[STREAM][len(before.streams[STREAM]) :]
        check_same(whole[: len(had)], had)
        kept = []
        for message in whole[len(had) :]:
            like = number_of(message), deaths_of(message)
            one = next((one for one in came if one not in kept and like_of(one) == like), None)
            if one is None:
                assert self.oracle.is_open, (STREAM, like, "was never there")
                return
            kept.append(one)
        lost = [one for one in came if one.number in confirmed and not one.deaths and one not in kept]
        assert self.oracle.is_open or not lost, ("lost", STREAM, lost)
        self.oracle.streams[STREAM] = [*had, *kept]


def offset_of(message):
    return message.properties.headers[OFFSET]


def bodies_of(messages):
    return [one.body for one in messages]


def like_of(one):
    return one.number, [each[:3] for each in one.deaths]


def check_same(messages, expected):
    """See that messages are those that are expected, in their order but where that is open."""
    found = [(number_of(one), deaths_of(one)) for one in messages]
    assert sorted(found, key=str) == sorted(map(like_of, expected), key=str), (STREAM, found, expected)
    published = [one.number for one in expected if not one.deaths]
    assert [number for number, deaths in found if not deaths] == published
