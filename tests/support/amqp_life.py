"""The history of a virtual host of AMQP, step by step in any order, beside the model that follows it."""

from __future__ import annotations

import shutil

from pamqp.commands import Basic, Channel as ChannelMethod, Tx

from gateway.amqp.dead_letters import RETRY_MS
from tests.support import amqp
from tests.support.amqp_adopting import Adopting
from tests.support.amqp_door import Message
from tests.support.amqp_ending import NAMES
from tests.support.amqp_host import (
    DEVICES,
    KEYS,
    KINDS,
    deaths_of,
    number_of,
)
from tests.support.amqp_host_client import COMMITS, CONFIRMS, Later, TornError
from tests.support.amqp_oracle_queue import Copy
from tests.support.amqp_streams import STREAM, StreamQueues
from tests.support.mqtt_door import NOW_MS

STEPS = 60


class Life(StreamQueues):
    """The history of a virtual host."""

    # Messages

    def draw(self):
        self.sent += 1
        exchange = self.chance.choice(["", "", "", *KINDS])
        keys = [*NAMES, STREAM] if exchange == "" else KEYS
        key = self.chance.choice(keys)
        headers = {name: self.chance.choice([1, 2]) for name in "hi" if self.chance.random() < 0.5}
        ttl_ms = self.chance.choice([None, None, None, 1_000, 4_000])
        return Copy(
            self.sent,
            exchange,
            key,
            headers,
            self.chance.choice([0, 0, 1, 3, 7]),
            ttl_ms,
            self.chance.choice([4, 4, 9]),
            copies=self.draw_keys(keys),
            hidden=self.draw_keys(keys),
        )

    def draw_keys(self, keys):
        return tuple(self.chance.choices(keys, k=self.chance.choice([0, 0, 0, 0, 0, 0, 1, 2])))

    def frame(self, made, *, mandatory=False):
        said = {} if made.ttl_ms is None else {"expiration": str(made.ttl_ms)}
        further = {name: [*keys] for name, keys in (("CC", made.copies), ("BCC", made.hidden)) if keys}
        return {
            "exchange": made.exchange, "key": made.key, "mandatory": mandatory, "headers": made.headers | further,
            "priority": made.priority, "delivery_mode": self.chance.choice([1, 2]), **said,
        }  # fmt: skip

    def publish(self):
        client = self.chance.choice(self.clients)
        data, expected = [], {}
        for _ in range(self.chance.randint(1, 4)):
            made, mandatory = self.draw(), self.chance.random() < 0.3
            ways = made.exchange, made.key, made.copies, made.hidden, made.headers
            self.note("publish", client.number, made.number, *ways, made.priority, made.ttl_ms)
            targets, refusing = self.oracle.publish(made)
            client.published += 1
            expected[client.published] = bool(refusing), mandatory and not targets, made.number
            data.append(self.encode(made, mandatory))
        client.expected |= expected
        self.send(client, *data)
        self.maybe_tear()
        self.settle()

    def publish_as_device(self):
        """Have an MQTT client publish, which is told of no queue that refuses it."""
        self.sent += 1
        made = Copy(self.sent, DEVICES, self.chance.choice(KEYS), {}, None, None, 4)
        qos = self.chance.choice([0, 1])
        self.note("publish as a device", made.number, made.key, qos)
        self.oracle.publish(made)
        device = self.world.client_of_mqtt(b"device")
        device.publish(made.key.replace(".", "/").encode(), (b"%d" % made.number).ljust(made.size, b"."), qos=qos)
        device.peer.vanish()
        self.settle()

    def encode(self, made, mandatory):
        body = (b"%d" % made.number).ljust(made.size, b".")
        return amqp.publish(CONFIRMS, body, **self.frame(made, mandatory=mandatory))

    def send(self, client, *data):
        if self.is_together:
            client.peer.begin(*data)
        else:
            client.peer.write(*data)

    def at_once(self):
        """Have some steps that come in one turn."""
        self.is_together = True
        for _ in range(self.chance.randint(2, 4)):
            self.chance.choice([self.publish, self.finish])()
        self.is_together = False
        self.world.turn()
        self.maybe_tear()
        self.settle()

    def settle_confirms(self, client):
        told, returned = {}, []
        expected, client.expected = client.expected, {}
        for one in client.take():
            if isinstance(one, Basic.Ack | Basic.Nack):
                first = min(expected) if one.multiple else one.delivery_tag
                for tag in range(first, one.delivery_tag + 1):
                    if tag not in told:
                        told[tag] = isinstance(one, Basic.Nack)
            elif isinstance(one, Message) and isinstance(one.method, Basic.Return):
                returned.append(number_of(one))
            else:
                client.buffer.append(one)
        assert told == {tag: refused for tag, (refused, _, _) in expected.items()}
        assert returned == [number for _, is_returned, number in expected.values() if is_returned]

    def get(self):
        client = self.chance.choice(self.clients)
        name = self.chance.choice(self.names_for(client))
        no_ack = self.chance.random() < 0.2
        channel = self.chance.choice([CONFIRMS, COMMITS])
        self.note("get", client.number, channel, name, no_ack)
        client.peer.send(Basic.Get(queue=name, no_ack=no_ack), channel=channel)
        self.maybe_tear()
        found = client.take()
        answers = [
            one
            for one in found
            if isinstance(one, Basic.GetEmpty) or (isinstance(one, Message) and isinstance(one.method, Basic.GetOk))
        ]
        client.buffer = [one for one in found if one not in answers]
        (answer,) = answers
        self.oracle.queues[name].unused_ms = None
        if isinstance(answer, Message):
            self.given(client, name, answer, channel, None, no_ack=no_ack)
        else:
            ready = self.oracle.queues[name].ready.values()
            assert all(self.oracle.queues[name].is_expired(one, self.oracle.now_ms) for one in ready), (
                name,
                "is not empty",
            )
        self.settle()

    def finish(self):
        """Acknowledge, reject or give back one message, or all up to it."""
        client = self.chance.choice(self.clients)
        tags = sorted(tag for channel, tag in client.held if channel == CONFIRMS)
        if not tags:
            return
        tag, multiple = self.chance.choice(tags), self.chance.random() < 0.3
        how = self.chance.choice(["ack", "ack", "reject", "give back"])
        self.note(how, client.number, tag, multiple)
        for each in [one for one in tags if one <= tag] if multiple else [tag]:
            self.end_one(client, (CONFIRMS, each), how)
        method = Basic.Nack(tag, multiple=multiple, requeue=how == "give back")
        self.send(client, amqp.method(CONFIRMS, Basic.Ack(tag, multiple=multiple) if how == "ack" else method))
        self.maybe_tear()
        self.settle()

    def commit(self):
        client = self.chance.choice(self.clients)
        is_kept = self.chance.random() < 0.7
        made = [self.draw() for _ in range(self.chance.randrange(3))]
        tags = [tag for channel, tag in client.held if channel == COMMITS]
        tags = self.chance.sample(tags, min(len(tags), self.chance.randrange(3)))
        hows = {tag: self.chance.choice(["ack", "reject", "give back"]) for tag in tags}
        self.note("commit", client.number, is_kept, made, hows)
        is_refused = False
        if is_kept:
            for one in made:
                is_refused |= bool(self.oracle.publish(one)[1])
            for tag, how in hows.items():
                self.end_one(client, (COMMITS, tag), how)
        self.committed = [one.number for one in made] if is_kept else []
        for one in made:
            client.peer.publish((b"%d" % one.number).ljust(one.size, b"."), channel=COMMITS, **self.frame(one))
        for tag, how in hows.items():
            method = Basic.Ack(tag) if how == "ack" else Basic.Nack(tag, requeue=how == "give back")
            client.peer.send(method, channel=COMMITS)
        client.peer.send(Tx.Commit() if is_kept else Tx.Rollback(), channel=COMMITS)
        self.maybe_tear()
        answers = client.take_out(Tx.CommitOk, Tx.RollbackOk, ChannelMethod.Close)
        if self.oracle.is_open:
            return
        if is_refused:
            self.open_anew(client, *answers)
        else:
            assert [type(one) for one in answers] == [Tx.CommitOk if is_kept else Tx.RollbackOk]
        self.settle()

    def open_anew(self, client, closed):
        """Go on where a queue refused a message of a commit, which closed its channel: it gave back what it had."""
        assert (closed.reply_code, closed.reply_text) == (406, "PRECONDITION_FAILED - partial tx completion")
        for key in [key for key in client.held if key[0] == COMMITS]:
            self.end_one(client, key, "give back")
        client.peer.send(ChannelMethod.CloseOk(), ChannelMethod.Open(), Tx.Select(), channel=COMMITS)
        assert len(client.take_out(ChannelMethod.OpenOk, Tx.SelectOk)) == 2

    def recover(self):
        client = self.chance.choice(self.clients)
        channel = self.chance.choice([CONFIRMS, COMMITS])
        self.note("recover", client.number, channel)
        for key in [key for key in client.held if key[0] == channel]:
            self.end_one(client, key, "give back")
        client.peer.send(Basic.Recover(requeue=True), channel=channel)
        self.maybe_tear()
        found = client.take()
        client.buffer = [one for one in found if not isinstance(one, Basic.RecoverOk)]
        assert len(client.buffer) == len(found) - 1
        self.settle()

    # The end of a process

    def end(self):
        """End the process by a kill or by a stop, and begin the next."""
        self.restart(self.chance.choice(["kill", "stop"]))
        self.settle()

    def restart(self, how):
        self.note(how)
        if how == "kill":
            self.ends += 1
            self.world.data_dir = shutil.copytree(self.world.data_dir, self.folder / str(self.ends))
        self.world.close()
        self.world.begin_ms = self.world.now_ms
        self.world.open()
        self.oracle.end_process()
        self.connect()
        self.tick()

    # A kill in the middle of a step

    def maybe_tear(self):
        if self.is_tearing and not self.is_together:
            raise TornError

    def tear(self):
        """Be killed in the middle of a step, or when the disk was full in it."""
        before = self.oracle.clone()
        self.committed = []
        for client in self.clients:
            client.expected = {}
        self.is_tearing = True
        if self.has_disk and self.chance.random() < 0.4:
            self.world.engine.left = self.chance.randrange(3)
        else:
            self.world.fuse = self.chance.randrange(6)
        self.note("tear", self.world.fuse, getattr(self.world.engine, "left", None))
        steps = [
            self.publish,
            self.finish,
            self.finish,
            self.commit,
            self.let_time_pass,
            self.recover,
            self.vanish,
            self.at_once,
        ]
        try:
            self.chance.choice(steps)()
        except TornError:
            pass
        else:
            self.note("nothing to tear")
        self.is_tearing = self.is_together = False
        self.world.fuse = None
        confirmed, committed = self.read_confirms()
        was_full = self.has_disk and self.world.engine.left is not None
        if was_full:
            self.world.now_ms += RETRY_MS  # for what found no room
            self.world.engine.left = None
        self.oracle.now_ms = self.world.now_ms
        has_no_ack = any(no_ack for client in self.clients for _, no_ack in client.consumers.values())
        self.oracle.let_all_go()
        self.restart("kill")
        self.oracle.let_all_go()
        self.tick()
        self.compare_names()
        if not self.oracle.is_open:
            self.oracle.is_open = has_no_ack
            self.adopt(before, confirmed, was_full=was_full, committed=committed)

    def adopt(self, before, confirmed, *, was_full, committed):
        """Go on with what queues hold behind a step that was torn."""
        observed = self.observe()
        self.note(
            "confirmed", confirmed, committed, {n: [(m.body, deaths_of(m)) for m in ms] for n, ms in observed.items()}
        )
        adopting = Adopting(before, self.oracle, was_full=was_full)
        adopting.take(observed)
        if not self.oracle.is_open:
            numbers = {*self.committed}
            confirmed |= numbers if committed else set()
            adopting.check(confirmed, numbers)
        self.adopt_stream(before, confirmed)
        self.settle()

    def read_confirms(self):
        """Return the numbers that are confirmed, and whether a transaction is committed."""
        confirmed, committed = set(), False
        for client in self.clients:
            for one in client.take():
                committed |= isinstance(one, Tx.CommitOk)
                if isinstance(one, Basic.Ack | Basic.Nack):
                    tags = [
                        t for t in client.expected if t == one.delivery_tag or (one.multiple and t < one.delivery_tag)
                    ]
                    numbers = {client.expected.pop(tag)[2] for tag in tags}
                    confirmed |= numbers if isinstance(one, Basic.Ack) else set()
        return confirmed, committed

    def observe(self):
        """Return all that queues hold, without a change."""
        self.ends += 1
        data_dir = shutil.copytree(self.world.data_dir, self.folder / f"{self.ends}")
        world = Later(data_dir, NOW_MS - 1_000_000, make_engine=self.make_engine)  # when nothing is expired
        world.broker.handle_timer(self.world.now_ms)  # but all that was hidden until a moment is shown
        world.turn()
        try:
            peer, found = world.client(), {}
            for name in self.oracle.queues:
                found[name] = []
                while isinstance(one := peer.call(Basic.Get(queue=name)), Message):
                    found[name].append(one)
        finally:
            world.close()
            shutil.rmtree(data_dir)
        return found

    def read(self):
        """Read all that was ever in a queue, which takes nothing."""
        name = self.chance.choice(self.names_for())
        if self.oracle.queues[name].has_exclusive:
            return
        self.note("read", name)
        self.oracle.queues[name].unused_ms = None
        reader = self.world.client().consume(name, "r", no_ack=True, arguments={"x-stream-offset": "first"})
        found = [(number_of(one), deaths_of(one)) for one in reader.messages()]
        reader.vanish()
        queue, now_ms = self.oracle.queues[name], self.world.now_ms
        expected = [
            (one.number, [each[:3] for each in one.deaths])
            for one in queue.ever
            if one.ttl_ms is None or one.stored_ms + one.ttl_ms > now_ms
        ]
        if queue.ever_is_known:
            assert sorted(found, key=str) == sorted(expected, key=str), (name, found, expected)

    def look(self):
        """Open a copy of what is there now, as after a kill, and compare all that queues give."""
        self.note("look")
        self.compare_copy(self.oracle.clone())

    def compare_copy(self, oracle):
        self.ends += 1
        data_dir = shutil.copytree(self.world.data_dir, self.folder / f"{self.ends}")
        world = Later(data_dir, self.world.now_ms, make_engine=self.make_engine)
        try:
            self.check_stream(world, oracle.streams[STREAM])
            oracle.end_process()
            self.tick(world)
            peer = world.client()
            while self.drain(world, peer, oracle):
                self.tick(world)
            if oracle.is_open:
                return
            for name, queue in oracle.queues.items():
                assert not queue.ready, ("lost", name, queue.ready)
        finally:
            world.close()
            shutil.rmtree(data_dir)

    def drain(self, world, peer, oracle):
        """Take all from each queue; return whether there was anything."""
        oracle.let_all_go()
        found = False
        for name in oracle.queues:
            while not oracle.is_open and isinstance(one := peer.call(Basic.Get(queue=name)), Message):
                oracle.take(name, number_of(one), deaths_of(one), no_ack=True)
                peer.send(Basic.Ack(one.tag))
                oracle.let_all_go()
                found = True
        return found and not oracle.is_open

    def draw_steps(self):
        """Return the steps of a life, each as often as it is to be taken in proportion."""
        steps = [self.publish] * 6 + [self.get] * 3 + [self.finish] * 6 + [self.consume] * 3 + [self.let_time_pass] * 3
        steps += [self.at_once] * 3
        steps += [
            self.read,
            self.read,
            self.commit,
            self.commit,
            self.recover,
            self.cancel,
            self.vanish,
            self.bind,
            self.unbind,
            self.declare_ending,
            self.declare_ending,
            self.trespass,
            self.read_stream,
            self.read_next,
            self.limit_all,
            self.limit_all,
            self.publish_as_device,
            self.publish_as_device,
            self.delete_stream,
        ]
        steps += [self.tear, self.tear, self.set_policy, self.purge, self.delete, self.end, self.end, self.look]
        return steps

    def run(self):
        steps = self.draw_steps()
        for _ in range(STEPS):
            self.oracle.begin_step()
            self.chance.choice(steps)()
            if self.oracle.is_open:
                return
        self.look()
