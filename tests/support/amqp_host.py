"""Clients of a virtual host that is followed by a model: what they define, are given and give back."""

from __future__ import annotations

from random import Random

from pamqp.commands import Basic, Exchange, Queue

from core.store.embedded import EmbeddedEngine
from gateway.amqp.inventory import count_messages
from gateway.amqp.policies import Policy
from tests.support.amqp_door import Message
from tests.support.amqp_host_client import CONFIRMS, Client, Later
from tests.support.amqp_oracle import Oracle
from tests.support.amqp_oracle_queue import Taker
from tests.support.full_engine import FullEngine
from tests.support.mqtt_door import NOW_MS

QUEUES = ("q0", "q1", "q2", "q3")
PASSING = "t0"  # a queue that ends with the process
KINDS = {"direct": "direct", "fan": "fanout", "topic": "topic", "headers": "headers"}
KEYS = ("a", "b", "a.b")
DEVICES = "amq.topic"  # what MQTT clients publish to
TRIES = 9


def number_of(message):
    return int(message.body.rstrip(b"."))


def deaths_of(message):
    headers = message.properties.headers or {}
    return [(one["reason"], one["queue"], one["count"]) for one in headers.get("x-death", [])]


class Host:
    """A virtual host, its clients, and the model that follows them."""

    def __init__(self, seed, folder, make_engine):
        self.has_disk = make_engine is EmbeddedEngine
        make_engine = FullEngine if self.has_disk else make_engine
        self.chance = Random(seed)
        self.folder = folder
        self.ends = 0
        self.sent = 0
        self.log = []
        self.oracle = Oracle(has_order=self.has_disk)
        self.is_tearing = self.is_together = False
        self.committed = []  # numbers, in this step
        said = {"is_sync": self.chance.random() < 0.5, "is_prompt": seed % 2 == 1}
        self.world = Later(folder / "0", NOW_MS, make_engine=make_engine, **said)
        self.oracle.now_ms = self.world.now_ms
        self.make_engine = make_engine
        self.is_late = not self.has_disk
        self.connect()
        self.declare_all()

    def connect(self):
        self.admin = self.world.client()
        self.clients = [Client(self.world, number) for number in range(2)]
        self.declare(PASSING, durable=False)

    # Definitions

    def declare_all(self):
        for name, kind in KINDS.items():
            arguments = {}
            if self.chance.random() < 0.4:
                arguments["alternate-exchange"] = self.oracle.alternates[name] = self.chance.choice([*KINDS])
            self.ok(
                Exchange.Declare(exchange=name, exchange_type=kind, durable=True, arguments=arguments),
                Exchange.DeclareOk,
            )
            self.oracle.kinds[name] = kind
        self.oracle.kinds[DEVICES] = "topic"
        for name in QUEUES:
            self.declare(name)
        for _ in range(8):
            self.bind()

    def ok(self, method, expected):
        answer = self.admin.call(method)
        assert isinstance(answer, expected), (method, answer)
        return answer

    def draw_arguments(self, *, durable):
        chance, found = self.chance, {}

        def maybe(name, part, *values):
            if chance.random() < part:
                found[name] = chance.choice(values)

        is_quorum = durable and chance.random() < 0.25
        if is_quorum:
            found["x-queue-type"] = "quorum"
            maybe("x-delivery-limit", 0.8, 0, 1, 2)
        else:
            maybe("x-max-priority", 0.25, 3)
        maybe("x-single-active-consumer", 0.2, True)
        maybe("x-message-ttl", 0.3, 0, 2_000, 5_000)
        maybe("x-max-length", 0.35, 0, 1, 3)
        if "x-max-priority" not in found:
            maybe("x-max-length-bytes", 0.15, 8, 20)
        bytes_refused = "x-max-length-bytes" in found
        maybe(
            "x-overflow",
            0 if bytes_refused else 0.5,
            "drop-head",
            "reject-publish",
            *([] if is_quorum else ["reject-publish-dlx"]),
        )
        if chance.random() < 0.6:
            found["x-dead-letter-exchange"] = chance.choice(["", "", *KINDS])
            if not found["x-dead-letter-exchange"] or chance.random() < 0.5:
                found["x-dead-letter-routing-key"] = chance.choice([*QUEUES, *KEYS])
        return found

    def declare(self, name, *, durable=True):
        arguments = self.draw_arguments(durable=durable)
        self.ok(Queue.Declare(queue=name, durable=durable, arguments=arguments), Queue.DeclareOk)
        self.oracle.declare(name, arguments, durable=durable)
        self.note("declare", name, arguments)

    def draw_binding(self):
        source = self.chance.choice([*KINDS])
        key = self.chance.choice(["a", "b", "a.*", "#", "#.b"] if source == "topic" else KEYS)
        headers = ()
        if source == "headers":
            key = "a"
            headers = (("x-match", self.chance.choice(["all", "any"])), ("h", self.chance.choice([1, 2])))
            if self.chance.random() < 0.5:
                headers += (("i", 1),)
        return source, key, headers

    def bind(self, queue=None):
        source, key, headers = self.draw_binding()
        if self.chance.random() < 0.2:
            queue = queue or self.chance.choice(sorted(self.oracle.names()))
            source, key, headers = DEVICES, self.chance.choice(["a", "b", "a.*", "#", "#.b"]), ()
        is_queue = queue is not None or self.chance.random() < 0.75
        name = queue or self.chance.choice(sorted(self.oracle.names()) if is_queue else [*KINDS])
        method = Queue.Bind(queue=name, exchange=source, routing_key=key, arguments=dict(headers))
        if not is_queue:
            method = Exchange.Bind(destination=name, source=source, routing_key=key, arguments=dict(headers))
        self.ok_of(name, method, Queue.BindOk if is_queue else Exchange.BindOk)
        self.oracle.bindings.add((source, is_queue, name, key, headers))
        self.note("bind", source, name, key, headers)

    def unbind(self):
        if not self.oracle.bindings:
            return
        binding = self.chance.choice(sorted(self.oracle.bindings, key=str))
        source, is_queue, name, key, headers = binding
        method = Queue.Unbind(queue=name, exchange=source, routing_key=key, arguments=dict(headers))
        if not is_queue:
            method = Exchange.Unbind(destination=name, source=source, routing_key=key, arguments=dict(headers))
        self.ok_of(name, method, Queue.UnbindOk if is_queue else Exchange.UnbindOk)
        self.oracle.bindings.discard(binding)
        self.note("unbind", *binding)

    def set_policy(self):
        name = self.chance.choice(QUEUES)
        definition = self.chance.choice(
            [
                {"max-length": 2},
                {"message-ttl": 3_000},
                {"dead-letter-exchange": "fan"},
                {"overflow": "reject-publish"},
                {},
            ]
        )
        self.oracle.policies[name] = definition
        policy = Policy("/", name, f"^{name}$", definition or {"max-length": 1_000})
        self.note("policy", name, definition)
        if definition:
            self.world.amqp.vhosts.put_policy(policy)
        elif found := self.world.amqp.vhosts.policies.find("/", name):
            self.world.amqp.vhosts.delete_policy(found)
        self.world.broker.when_kept(lambda error: None)
        self.world.turn()
        self.settle()

    # Consumers

    def consume(self):
        client = self.chance.choice(self.clients)
        name, exclusive = self.chance.choice(self.names_for(client)), self.chance.random() < 0.15
        if len(client.consumers) >= 3 or not self.may_consume(name, exclusive=exclusive):
            return
        client.tags += 1
        tag = f"c{client.tags}"
        prefetch, rank = self.chance.choice([1, 1, 2, 3, 0]), self.chance.choice([0, 0, 1, -1])
        no_ack = self.chance.random() < 0.15
        self.note("consume", client.number, name, tag, prefetch, rank, no_ack, exclusive)
        arguments = {"x-priority": rank} if rank else {}
        client.peer.send(
            Basic.Qos(prefetch_count=prefetch),
            Basic.Consume(queue=name, consumer_tag=tag, no_ack=no_ack, exclusive=exclusive, arguments=arguments),
        )
        room = None if no_ack or not prefetch else prefetch
        client.consumers[tag] = name, no_ack
        queue = self.oracle.queues[name]
        queue.takers[client.number, tag] = Taker(rank, room, self.oracle.count(), exclusive=exclusive, no_ack=no_ack)
        queue.unused_ms = None
        self.settle()

    def limit_all(self):
        """Limit what the consumers of a channel have together, or let go of that."""
        client, limit = self.chance.choice(self.clients), self.chance.choice([0, 1, 2, 4])
        if any(channel == CONFIRMS for channel, _ in client.held):
            return
        self.note("limit", client.number, limit)
        client.peer.send(Basic.Qos(prefetch_count=limit, global_=True))
        self.oracle.limits.pop(client.number, None)
        if limit:
            self.oracle.limits[client.number] = limit
        self.settle()

    def cancel(self):
        client = self.chance.choice(self.clients)
        if not client.consumers:
            return
        tag = self.chance.choice([*client.consumers])
        self.note("cancel", client.number, tag)
        client.peer.send(Basic.Cancel(tag))
        name, _ = client.consumers.pop(tag)
        self.oracle.queues[name].takers.pop((client.number, tag))
        self.settle()

    def vanish(self):
        """Lose a connection, and connect anew."""
        client = self.chance.choice(self.clients)
        self.note("vanish", client.number)
        for tag, (name, _) in client.consumers.items():
            self.oracle.queues[name].takers.pop((client.number, tag), None)
        client.consumers.clear()
        for key in list(client.held):
            self.end_one(client, key, "give back")
        self.end_owned(client)
        self.oracle.limits.pop(client.number, None)
        client.peer.vanish()
        self.maybe_tear()
        self.clients[client.number] = Client(self.world, client.number)
        self.settle()

    # What happens to queues

    def purge(self):
        name = self.chance.choice([*self.oracle.queues])
        self.note("purge", name)
        answer = self.ok_of(name, Queue.Purge(queue=name), Queue.PurgeOk)
        assert answer.message_count == self.oracle.purge(name)
        self.settle()

    def delete(self):
        name = self.chance.choice([*self.oracle.queues])
        self.note("delete", name)
        count = len(self.oracle.queues[name].ready)
        answer = self.ok_of(name, Queue.Delete(queue=name), Queue.DeleteOk)
        assert answer.message_count == count
        self.oracle.delete(name)
        for client in self.clients:
            for tag in [tag for tag, (queue, _) in client.consumers.items() if queue == name]:
                del client.consumers[tag]
        if name in (*QUEUES, PASSING):
            self.declare(name, durable=name != PASSING)
        self.settle()

    def let_time_pass(self):
        self.world.now_ms += self.chance.choice([1_000, 2_000, 5_000])
        self.oracle.now_ms = self.world.now_ms
        self.note("time", self.world.now_ms % 1_000_000)
        self.tick()
        self.maybe_tear()
        self.settle()

    # What is given, and what becomes of it

    def given(self, client, name, message, channel, consumer, *, no_ack):
        number = number_of(message)
        self.note("  given", client.number, name, number, message.tag, consumer)
        one = self.oracle.take(name, number, deaths_of(message), no_ack=no_ack)
        assert message.method.redelivered == (one.given > 1), (name, number, one.given)
        headers = message.properties.headers or {}
        count = headers.get("x-delivery-count", 0)
        assert count == (one.given - 1 if self.oracle.queues[name].is_quorum() else 0)
        assert (message.method.exchange, message.method.routing_key) == (one.exchange, one.key)
        assert message.properties.priority == one.priority
        assert {name: headers[name] for name in "hi" if name in headers} == one.headers
        assert headers.get("CC", []) == [*one.copies]
        assert "BCC" not in headers
        assert message.properties.expiration == (None if one.ttl_ms is None else str(one.ttl_ms))
        if one.deaths:
            first = tuple(headers[f"x-first-death-{what}"] for what in ("exchange", "queue", "reason"))
            assert first == one.first_death
            told = [
                (each["exchange"], each["routing-keys"], each.get("original-expiration")) for each in headers["x-death"]
            ]
            assert told == [(each[3], each[4], None if each[5] is None else str(each[5])) for each in one.deaths]
        if not no_ack:
            client.held[channel, message.tag] = name, one.uid, consumer
            if consumer is not None and client.number in self.oracle.limits:
                self.oracle.limits[client.number] -= 1
            taker = self.oracle.queues[name].takers.get((client.number, consumer))
            if taker and taker.room is not None:
                taker.room -= 1

    def end_one(self, client, key, how):
        name, uid, consumer = client.held.pop(key)
        if consumer is not None and client.number in self.oracle.limits:
            self.oracle.limits[client.number] += 1
        queue = self.oracle.queues.get(name)
        if queue is not None:
            taker = queue.takers.get((client.number, consumer))
            if taker and taker.room is not None and uid in queue.unacked:
                taker.room += 1
        self.oracle.settle(name, uid, how)

    def maybe_tear(self):
        """Break off here, where a step is to be torn."""

    def note(self, *what):
        self.log.append((*what, "together") if self.is_together else what)

    def settle(self):
        """Let the model follow: what was given is there to be given, and what is left is what the queues say."""
        self.oracle.follow_policies()
        if self.is_together or self.oracle.is_open:
            return
        waiting = []
        for client in self.clients:
            if client.expected:
                self.settle_confirms(client)
            waiting += [(client, one) for one in client.take() if isinstance(one, Message)]
        self.apply(waiting)
        if self.oracle.is_open:
            return
        for name, queue in self.oracle.queues.items():
            for _ in range(TRIES if self.is_late else 1):  # what is on its way is counted, whatever becomes of it
                if self.counts(name) == (len(queue.ready), len(queue.unacked)):
                    break
            assert self.counts(name) == (len(queue.ready), len(queue.unacked)), (name, self.counts(name), queue)
            assert not queue.ready or queue.room_left() == 0, (name, "does not give", queue)

    def counts(self, name):
        """Return how many messages of a queue are ready, and how many are not acknowledged."""
        shown = self.world.amqp.vhost.find(name)
        answer = self.ok_of(name, Queue.Declare(queue=name, passive=True), Queue.DeclareOk)
        assert answer.consumer_count == len(self.oracle.queues[name].takers)
        return answer.message_count, self.unacked_count(shown)

    def unacked_count(self, shown):
        return count_messages(self.world.broker, self.world.amqp.vhost, shown)[1]

    def apply(self, waiting):
        """Let messages be given, those to each client in their order, and others go where none can be given."""
        while True:
            for client in self.clients:
                # of several queues those may come first that others wait for
                mine = (one for to, one in waiting if to is client)
                found = next((one for one in mine if self.may_come(client, one)), None)
                if found is not None:
                    name, no_ack = client.consumers[found.method.consumer_tag]
                    self.given(client, name, found, CONFIRMS, found.method.consumer_tag, no_ack=no_ack)
                    waiting.remove((client, found))
                    break
            else:
                if not self.oracle.let_go():
                    break
        assert self.oracle.is_open or not waiting, [
            (client.consumers[one.method.consumer_tag], one.body, deaths_of(one)) for client, one in waiting
        ]

    def may_come(self, client, message):
        name, _ = client.consumers[message.method.consumer_tag]
        return bool(self.oracle.find_first(name, number_of(message), deaths_of(message)))

    def tick(self, world=None):
        world = world or self.world
        for _ in range(2):
            deadline_ms = world.broker.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= world.now_ms:
                world.broker.handle_timer(world.now_ms)
            for interval in world.amqp.intervals():
                interval.work(world.now_ms)
            world.turn()
