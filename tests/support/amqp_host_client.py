"""A connection to a virtual host that is followed by a model, and the world that it is of."""

from __future__ import annotations

from pamqp.commands import Tx

from tests.support.amqp_door import AmqpWorld

CONFIRMS, COMMITS = 1, 2  # channels


class Client:
    """One connection, what it has, and what it waits for."""

    def __init__(self, world, number):
        self.number = number
        self.peer = world.client(channels=2)
        self.peer.confirms()
        self.peer.call(Tx.Select(), COMMITS)
        self.expected = {}  # by confirm tag, in this step: whether it is refused, and returned, and the number
        self.held = {}  # by channel and tag: queue, uid, consumer
        self.consumers = {}  # by consumer tag: queue, channel, whether no_ack
        self.published = 0
        self.tags = 0
        self.buffer = []

    def take(self):
        found, self.buffer = self.buffer + self.peer.take(), []
        return found

    def take_out(self, *kinds):
        """Take what came of some kinds, and leave the rest for later."""
        found = self.take()
        self.buffer = [one for one in found if not isinstance(one, kinds)]
        return [one for one in found if isinstance(one, kinds)]


class TornError(Exception):
    """The process is killed here."""


class Later(AmqpWorld):
    """A world that begins at a moment, and breaks off after so many steps where `fuse` says so."""

    def __init__(self, data_dir, begin_ms, **options):
        self.begin_ms = begin_ms
        self.fuse = None
        super().__init__(data_dir, **options)

    def open(self):
        self.now_ms = self.begin_ms
        super().open()

    def step(self):
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise TornError
        super().step()
