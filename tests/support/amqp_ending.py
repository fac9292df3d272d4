"""Queues of a virtual host that end by themselves, with their lease or their connection, and who may use which."""

from __future__ import annotations

from pamqp import commands
from pamqp.commands import Basic, Queue

from tests.support.amqp_host import PASSING, QUEUES, Host
from tests.support.amqp_host_client import CONFIRMS

LEASED = "e0"
OWNED = ("x0", "x1")  # each is the exclusive queue of the client of its number
NAMES = (*QUEUES, PASSING, LEASED, *OWNED)
LOCKED, REFUSED = 405, 403


class EndingQueues(Host):
    """Has such queues declared now and then."""

    def names_for(self, client=None):
        """Return the queues that a client may use, those of all where none is said."""
        number = None if client is None else client.number
        return [name for name, queue in self.oracle.queues.items() if queue.owner in (None, number)]

    def ok_of(self, name, method, expected):
        """Have a method of a queue answered, by its owner where it has one."""
        queue = self.oracle.queues.get(name)
        if queue is None or queue.owner is None:
            return self.ok(method, expected)
        return self.ask(self.clients[queue.owner], method, expected)

    @staticmethod
    def ask(client, method, expected):
        client.peer.send(method, channel=CONFIRMS)
        found = client.take()
        (answer,) = (one for one in found if isinstance(one, expected))
        client.buffer = [one for one in found if one is not answer]
        return answer

    def declare_ending(self):
        client = self.chance.choice(self.clients)
        name = self.chance.choice([LEASED, OWNED[client.number]])
        durable = self.chance.random() < 0.5
        found = self.oracle.queues.get(name)
        if found is not None:
            if name == LEASED:  # its lease begins anew
                self.note("declare again", name)
                method = Queue.Declare(queue=name, durable=found.is_durable, arguments=found.arguments)
                self.ok(method, Queue.DeclareOk)
                found.unused_ms = None
            return
        is_owned = name != LEASED
        arguments = self.draw_arguments(durable=durable and not is_owned)
        if not is_owned:
            arguments["x-expires"] = self.chance.choice([1_000, 3_000, 6_000])
        self.note("declare", name, durable, arguments)
        method = Queue.Declare(queue=name, durable=durable, exclusive=is_owned, arguments=arguments)
        if is_owned:
            self.ask(client, method, Queue.DeclareOk)
        else:
            self.ok(method, Queue.DeclareOk)
        self.oracle.declare(name, arguments, durable=durable and not is_owned)
        self.oracle.queues[name].owner = client.number if is_owned else None
        for _ in range(2):
            self.bind(name)
        self.settle()

    def trespass(self):
        """Have a stranger want what another connection has to itself."""
        names = [name for name, queue in self.oracle.queues.items() if queue.owner is not None]
        if not names:
            return
        name = self.chance.choice(names)
        methods = [
            Queue.Declare(queue=name, passive=True),
            Queue.Declare(queue=name, exclusive=True),
            Queue.Bind(queue=name, exchange="fan"),
            Queue.Purge(queue=name),
            Queue.Delete(queue=name),
            Basic.Get(queue=name),
            Basic.Consume(queue=name),
        ]
        method = self.chance.choice(methods)
        self.note("trespass", method.name, name)
        self.is_refused(method, LOCKED)
        self.settle()

    def is_refused(self, method, code):
        """See that a stranger's method ends its channel."""
        stranger = self.world.client()
        answer = stranger.call(method)
        assert isinstance(answer, commands.Channel.Close), (method, answer)
        assert answer.reply_code == code
        stranger.vanish()

    def may_consume(self, name, *, exclusive):
        """Return whether a queue has room for one more consumer; see that it is refused where not."""
        queue = self.oracle.queues[name]
        is_single = queue.arguments.get("x-single-active-consumer")
        if not queue.has_exclusive and not (exclusive and (queue.takers or is_single)):
            return True
        self.note("is refused", name, exclusive)
        code = REFUSED if queue.owner is None else LOCKED
        self.is_refused(Basic.Consume(queue=name, exclusive=exclusive), code)
        return False

    def end_owned(self, client):
        """Let go of the queue that ends with a connection."""
        if (name := OWNED[client.number]) in self.oracle.queues:
            self.oracle.delete(name)

    def tick(self, world=None):
        super().tick(world)
        if world is None:
            self.oracle.end_leases()

    def counts(self, name):
        queue = self.oracle.queues[name]
        if "x-expires" not in queue.arguments:
            return super().counts(name)
        self.world.turn()  # a declaration would begin its lease anew
        shown = self.world.amqp.vhost.find(name)
        assert shown is not None, (name, "is gone")
        assert shown.reader_count() == len(queue.takers)
        return shown.ready_count(self.world.now_ms), self.unacked_count(shown)

    def compare_names(self):
        """Let a life end where a queue ended in a step that was torn, before the kill or not."""
        there = {name for name in NAMES if self.world.amqp.vhost.find(name) is not None}
        self.oracle.is_open |= there != {*self.oracle.queues}
