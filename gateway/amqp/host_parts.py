"""What all virtual hosts work with: none has anything of its own that costs while it is not used."""

from __future__ import annotations

from collections.abc import Callable

from core.broker import Broker
from core.message import StoredBatch
from gateway.amqp.dead_letters import LetterDesk
from gateway.amqp.definition_rows import ROWS
from gateway.amqp.delays import Delays, Surroundings
from gateway.amqp.head_expiries import HeadExpiries
from gateway.amqp.leases import Leases
from gateway.amqp.policies import Policies
from gateway.amqp.queue_pops import QueuePops
from gateway.amqp.shared_queue import TAKE_COUNT_MAX, SharedQueue
from gateway.runtime.chores import Chores

TABLE = "amqp"


class HostParts:
    """The parts.

    Args:
        broker: Where the light queues are.
        find_vhost: Gives a virtual host by its name, None where it is gone.
    """

    def __init__(self, broker: Broker, find_vhost: Callable[[str], Surroundings | None]) -> None:
        self.broker = broker
        self.table = broker.table(TABLE, ROWS)
        self.stored = StoredBatch(TAKE_COUNT_MAX)
        self.chores = Chores(broker)
        self.desk = LetterDesk(broker)
        self.delays = Delays(broker, find_vhost)
        self.expiries = HeadExpiries(broker)
        self.leases = Leases()
        self.pops = QueuePops(broker)
        self.policies = Policies(broker)

    def make_pops(self, note_opened: Callable[[SharedQueue], None]) -> QueuePops:
        """Return what opens the queues of one virtual host, and tells each that it opens."""
        return QueuePops(self.broker, note_opened)
