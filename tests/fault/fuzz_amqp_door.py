"""Clients that mean no good at a whole AMQP door, and one that means well: it loses nothing, and waits for nobody.

`python -m tests.fault.fuzz_amqp_door --cases 200000`: a case is one thing that a bad client does. It sends any bytes,
hoards what it is given, publishes though it was told not to, binds and publishes wide tables, has exchanges lead in
circles, and an operator sets policies with hostile patterns. Reproducible by `--seed`.
"""

from __future__ import annotations

import logging
import random
import tempfile
from pathlib import Path

from pamqp import commands
from pamqp.commands import Basic, Confirm, Connection, Exchange, Queue, Tx

from gateway.amqp.policies import InvalidPolicyError, Policy
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.states import State
from gateway.amqp.virtual_hosts import VirtualHosts
from tests.fault.fuzzing import Fuzz, mutate
from tests.support import amqp
from tests.support.amqp_door import CAPABILITIES, AmqpWorld, Message

ROUND = 150  # cases at one door, before it ends
CHECKED_EVERY = 10
BAD_CLIENTS = 4
LOW = 1
ENOUGH = 1 << 40
TOLD = {"capabilities": {**CAPABILITIES, "connection.blocked": True}}
CODES = frozenset(ReplyCode)
QUEUES, EXCHANGES = ("q0", "q1", "q2"), ("x0", "x1", "x2", "amq.headers", "amq.topic", "amq.fanout", "")
KINDS = ("direct", "fanout", "topic", "headers", "x-random", "x-consistent-hash", "x-odd")
PATTERNS = ("^(a+)+$", "(.*a){12}$", "^(?!(a+)+$)(a|b)*c$", "(((a{1,99}){1,99}){1,99}){1,99}", r"(a)\1", "(", "q", "")
DEFINITIONS = (
    {"max-length": 3},
    {"max-length-bytes": 40, "overflow": "reject-publish-dlx", "dead-letter-exchange": "x0"},
    {"message-ttl": 50, "dead-letter-exchange": ""},
    {"alternate-exchange": "x1"},
    {"odd": 1},
)
ARGUMENTS = (
    {},
    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q0", "x-message-ttl": 20},
    {"x-max-length": 2, "x-overflow": "reject-publish"},
    {"x-max-priority": 5},
    {"x-queue-type": "quorum", "x-delivery-limit": 1},
    {"x-queue-type": "stream"},
    {"x-message-ttl": -1},
    {"x-max-length": "many"},
)


def run_round(seed, count, cases):
    """Have bad clients do so many things.

    Raises:
        AssertionError: A reply has a code that there is not, or the client that means well lost something.
    """
    with tempfile.TemporaryDirectory() as folder:
        site = _Site(Path(folder), random.Random(seed), cases)
        for number in range(count):
            site.do_something()
            if number % CHECKED_EVERY == 0:
                site.check_that_others_are_served()
        site.check_that_nothing_is_lost()
        site.world.close()


def wide(rng):
    """Return a table of up to 400 fields."""
    return {f"h{i}": rng.choice((1, "text", True, None)) for i in range(rng.choice((0, 0, 1, 5, 250, 400)))}


class _Site:
    """A door, its bad clients, and the other one, in a virtual host of its own."""

    def __init__(self, folder, rng, cases):
        self.rng = rng
        self.cases = cases
        self.world = AmqpWorld(folder, vhosts=("good",))
        self.bad = [self._enter() for _ in range(BAD_CLIENTS)]
        self.sent = self.taken = 0
        self._begin_well()
        for number, name in enumerate(QUEUES):
            self.bad[0].declare(name, durable=True)
            self.bad[0].call(Exchange.Declare(exchange=f"x{number}", exchange_type=KINDS[number]))
            self.bad[0].call(Queue.Bind(queue=name, exchange=f"x{number}", routing_key="k"))

    def _enter(self):
        return self.world.client(channels=2, properties=TOLD)

    def _begin_well(self):
        self.good = self.world.client(vhost="good").confirms()
        assert isinstance(self.good.declare("kept", durable=True), Queue.DeclareOk)

    def do_something(self):
        """Let one of the bad clients do one thing, or time go by."""
        self.world.now_ms += self.rng.choice((0, 0, 1, 30, 1_000))
        at = self.rng.randrange(BAD_CLIENTS)
        peer = self.bad[at]
        self.rng.choice(_DEEDS)(self, peer)
        self.world.turn()
        self._look_at_replies(peer)
        if peer.is_closed or peer.handler.output.connection.state != State.OPEN:
            peer.vanish()
            self.bad[at] = self._enter()
            self.world.peers.remove(peer)

    def _look_at_replies(self, peer):
        frames = amqp.decode_frames(bytes(peer.transport.sent))
        peer.transport.sent.clear()
        for channel, one in frames:
            if isinstance(one, commands.Channel.Close | Connection.Close):
                assert one.reply_code in CODES, one
                assert one.reply_text.startswith(f"{ReplyCode(one.reply_code).name} - "), one
            if isinstance(one, commands.Channel.Close):
                peer.send(commands.Channel.CloseOk(), commands.Channel.Open(), channel=channel)

    def check_that_others_are_served(self):
        """Have the other client publish and be confirmed, and take what it published before."""
        self.good.take()
        self.good.publish(b"%d" % self.sent, key="kept", delivery_mode=2)
        self.sent += 1
        assert [type(one) for one in self.good.take()] == [Basic.Ack]
        if self.rng.randrange(2):
            self._take_one()

    def _take_one(self):
        got = self.good.call(Basic.Get(queue="kept", no_ack=True))
        assert isinstance(got, Message)
        assert got.body == b"%d" % self.taken
        self.taken += 1

    def check_that_nothing_is_lost(self):
        """Let the bad clients go: nothing of theirs stays taken; and what the other one has outlives the process."""
        for peer in self.bad:
            peer.vanish()
        for _ in range(3):
            self.world.now_ms += 10_000
            self.world.turn()
        vhosts: VirtualHosts = self.world.amqp.vhosts
        assert {queue.name: queue.pop.unacked_count for queue in vhosts.find("/") if queue.pop.unacked_count} == {}
        self.world.close()
        self.world.open()
        self._begin_well()
        while self.taken < self.sent:
            self._take_one()
        assert isinstance(self.good.call(Basic.Get(queue="kept")), Basic.GetEmpty)

    # What bad clients do

    def _send(self, peer, *methods):
        peer.send(*methods, channel=self.rng.choice((1, 1, 2)))

    def say_anything(self, peer):
        peer.begin(mutate(self.rng, self.cases)[2:])

    def declare(self, peer):
        rng = self.rng
        if rng.randrange(2):
            said = {**rng.choice(ARGUMENTS), **(wide(rng) if not rng.randrange(20) else {})}
            named = Queue.Declare(queue=rng.choice(QUEUES), durable=bool(rng.randrange(4)), arguments=said)
        else:
            said = {"alternate-exchange": rng.choice(EXCHANGES)} if rng.randrange(2) else {}
            named = Exchange.Declare(exchange=rng.choice(EXCHANGES), exchange_type=rng.choice(KINDS), arguments=said)
        self._send(peer, named)

    def bind(self, peer):
        rng = self.rng
        said = {"x-match": rng.choice(("all", "any", "all", "any-with-x", "some")), **wide(rng)}
        key, source = rng.choice(("", "#", "a.*", "5", "k")), rng.choice(EXCHANGES)
        if rng.randrange(2):
            self._send(peer, Queue.Bind(queue=rng.choice(QUEUES), exchange=source, routing_key=key, arguments=said))
        else:
            way = {"destination": rng.choice(EXCHANGES), "source": source, "routing_key": key}
            self._send(peer, Exchange.Bind(**way, arguments=said))

    def publish(self, peer):
        rng = self.rng
        more = {"headers": {**wide(rng), "CC": rng.choice((["q0", "q1"], "q0"))}} if rng.randrange(2) else {}
        said = {"mandatory": bool(rng.randrange(2)), "key": rng.choice((*QUEUES, "a.b", "")), **more}
        one = amqp.publish(1, b"x" * rng.choice((0, 1, 30, 5_000)), exchange=rng.choice(EXCHANGES), **said)
        peer.begin(one * rng.choice((1, 20)))

    def announce_more(self, peer):
        method = amqp.method(1, Basic.Publish(routing_key="q0"))
        size = self.rng.choice((10, 1 << 20, 1 << 34, (1 << 64) - 1))
        head = amqp.raw_frame(2, 1, b"\0\x3c\0\0" + size.to_bytes(8, "big") + b"\0\0")
        peer.begin(method + head + amqp.raw_frame(3, 1, b"x" * self.rng.choice((1, 11, 4_000))))

    def hoard(self, peer):
        queue, tag = self.rng.choice(QUEUES), f"t{self.rng.randrange(4)}"
        said = {"x-stream-offset": self.rng.choice(("first", "next", "odd", 3))} if not self.rng.randrange(3) else {}
        qos = Basic.Qos(prefetch_count=self.rng.choice((0, 3)), global_=bool(self.rng.randrange(2)))
        self._send(peer, qos, Basic.Consume(queue=queue, consumer_tag=tag, arguments=said))

    def get(self, peer):
        self._send(peer, *[Basic.Get(queue=self.rng.choice(QUEUES))] * self.rng.choice((1, 30)))

    def settle(self, peer):
        tag, many = self.rng.choice((0, 1, 2, 7, 1 << 40)), bool(self.rng.randrange(2))
        choices = (
            Basic.Ack(tag, multiple=many), Basic.Nack(tag, multiple=many, requeue=many), Basic.Reject(tag),
            Basic.Recover(requeue=many),
        )  # fmt: skip
        self._send(peer, self.rng.choice(choices))

    def switch(self, peer):
        self._send(peer, self.rng.choice((Tx.Select(), Tx.Commit(), Tx.Rollback(), Confirm.Select())))

    def end_something(self, peer):
        queue, exchange = self.rng.choice(QUEUES), self.rng.choice(EXCHANGES)
        choices = (Queue.Delete(queue=queue), Queue.Purge(queue=queue), Exchange.Delete(exchange=exchange))
        self._send(peer, self.rng.choice(choices))

    def ignore_blocked(self, peer):
        """Publish on, where the disk is low; what a connection sends that is held stays in its socket."""
        self.world.set_free(LOW)
        for _ in range(20):
            if not peer.transport.is_held and not peer.is_closed:
                peer.begin(amqp.publish(1, b"x" * 1_000, key="q0"))
                self.world.turn()
        before = self.world.store.message_count
        self.world.turn()
        assert self.world.store.message_count == before
        self.world.set_free(ENOUGH)

    def set_policy(self, _peer):
        pattern, definition = self.rng.choice(PATTERNS), self.rng.choice(DEFINITIONS)
        try:
            self.world.amqp.vhosts.put_policy(Policy("/", f"p{self.rng.randrange(3)}", pattern, definition))
        except InvalidPolicyError:
            return

    def vanish(self, peer):
        peer.transport.is_closed = True


_OFTEN = (_Site.declare, _Site.bind, _Site.publish, _Site.hoard, _Site.get, _Site.settle)
_SELDOM = (
    *(_Site.say_anything, _Site.announce_more, _Site.switch, _Site.end_something, _Site.ignore_blocked),
    *(_Site.set_policy, _Site.vanish),
)
_DEEDS = (*_OFTEN * 4, *_SELDOM)


class DoorFuzz(Fuzz):
    """Rounds of such histories, in place of mutations of single cases."""

    cases = 200_000
    is_guided = False

    def main(self):
        """Do as many things as the command line asks for; what the door logs of them is not shown."""
        logging.disable(logging.CRITICAL)
        super().main()

    def run_mutants(self, count, seed, note=None):
        """Do so many things, in rounds.

        Raises:
            RuntimeError: Something went wrong; the text names the round's seed.
        """
        cases = self.read_corpus()
        for done in range(0, count, ROUND):
            if note is not None:
                note(done)
            try:
                run_round(seed + done, min(ROUND, count - done), cases)
            except Exception as error:
                raise RuntimeError(f"round of seed {seed + done}") from error


FUZZ = DoorFuzz("amqp_cases.txt", None, [])

if __name__ == "__main__":
    FUZZ.main()
