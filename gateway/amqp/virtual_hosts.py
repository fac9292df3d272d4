"""The virtual hosts of the AMQP door, by name: made and deleted while the gateway runs, durable, and tended together.

Source: docs/protocols/amqp.md, "Virtual hosts".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

from core.broker import Broker
from core.errors import LmqError
from core.lmq.queue_name import amqp_level_name, amqp_queue_name, amqp_refused_name
from gateway.amqp.definition_rows import DEFAULT_VHOST, QUEUE, load_arguments, split_key
from gateway.amqp.dismantling import dismantle
from gateway.amqp.head_looks import HeadLooks
from gateway.amqp.host_parts import HostParts
from gateway.amqp.host_profile import HostProfile, dump_profile, load_profile
from gateway.amqp.policies import Policies, Policy
from gateway.amqp.queue_arguments import find_terms
from gateway.amqp.queue_pops import GROUP
from gateway.amqp.queues import VirtualHost
from gateway.runtime.chores import AT_ONCE, Chores

TABLE = "amqp_vhosts"
CLOSED_AT_ONCE = 16  # connections of some 50 us each; of more the first ones wait for the next turn


class VirtualHosts:
    """All virtual hosts; each has exchanges, queues and bindings of its own.

    Args:
        broker: Where the light queues are.
        topic_vhost: The one whose `amq.topic` is the one topic space.
    """

    def __init__(self, broker: Broker, topic_vhost: str) -> None:
        self._broker = broker
        self.topic_vhost = topic_vhost
        self.drop_rights: Callable[[str], Iterable[None]] = _nothing  # in one that is deleted: before the name is free
        self._table = broker.table(TABLE)
        self._hosts: dict[str, VirtualHost] = {}
        self._going: dict[str, list[Callable[[], object]]] = {}  # being deleted, with callbacks for their end
        self._parts = HostParts(broker, self.find)
        self._head_looks = HeadLooks(broker, self._parts.pops, self._parts.stored)
        self._is_dropping = False  # a walk over all queues is under way
        self._is_removing = False

    @property
    def chores(self) -> Chores:
        """What is done in steps for any of them."""
        return self._parts.chores

    def finish(self, now_ms: int) -> None:
        """Do all that is left to be done, at the end of the process."""
        self.chores.finish()
        for vhost in self:
            vhost.dead_letters.finish(now_ms)

    def let_go(self) -> None:
        """Let the collector of cycles take all of this, after the end: in a process that goes on without a gateway.

        It looks at no trie and no long list.
        """
        for vhost in self:
            vhost.exchanges.let_go()
            vhost.rows.queues.clear()

    def load(self, names: Iterable[str], now_ms: int) -> None:
        """Bring back what is durable; make those of `names` that are not there, and in a new folder `/`.

        A deletion that had begun goes on. What dead letters finished is done before.
        """
        rows: dict[str, list[tuple[list[Any], bytes]]] = {}  # read one by one: a million take 0.5 GB when they are
        # By name, as most were made: so light queues follow each other as queues do, and are found at once.
        for key, value in sorted(self._parts.table.items(), key=itemgetter(0)):
            vhost, parts = split_key(key)
            rows.setdefault(vhost, []).append((parts, value))
        self._restore(rows)
        self._parts.desk.open.recover()
        others = {name for name, _ in self._broker.pop.floors(GROUP)}
        for key, value in list(self._table.items()) or [(DEFAULT_VHOST.encode(), b"{}")]:
            found = self._new(key.decode())
            found.profile, is_going = load_profile(value)
            found.load(rows.pop(found.name, []))
            self._take_out(found, others)
            self._hosts[found.name] = found
            self._write(found)
            if is_going:
                self.delete(found, now_ms)
        for light_name in others:
            self._parts.pops.drop(light_name)
        self.make_all(names)

    @staticmethod
    def _take_out(vhost: VirtualHost, others: set[bytes]) -> None:
        """Leave in `others` the light queues that are not of a virtual host.

        A process that was killed before it wrote a queue down may have taken messages out of it: nobody would ever take
        more, and the log would be kept for them.
        """
        for queue in vhost if others else ():
            others.discard(queue.light_name)
        for queue in vhost if others else ():
            others.discard(amqp_refused_name(queue.light_name))
            for level in range(1, queue.terms.priority_max + 1):
                others.discard(amqp_level_name(queue.light_name, level))

    def _restore(self, rows: Mapping[str, list[tuple[list[Any], bytes]]]) -> None:
        """Restore the state of queues that are still defined: the process ended before their deletion was durable."""
        pop, found = self._broker.pop, False
        for vhost, of_one in rows.items() if pop.has_dropped else ():
            for parts, value in of_one:
                row = json.loads(value) if parts[0] == QUEUE else {}
                if row.get("durable"):
                    light_name = amqp_queue_name(vhost.encode(), parts[1].encode())
                    priority_max = find_terms(load_arguments(row["arguments"])).priority_max
                    found |= self._parts.pops.restore(light_name, priority_max, row.get("first", 0))
        pop.forget_dropped()
        if found:
            self._broker.cut_back()

    def make_all(self, names: Iterable[str]) -> None:
        """Make virtual hosts, where they are not there yet; at once, or when the last of that name is gone."""
        for name in names:
            self.when_gone(name, partial(self.make, name))

    def make(self, name: str, profile: HostProfile | None = None) -> VirtualHost:
        """Return the virtual host of that name, made where it is not there yet, with this profile where one is given.

        The last one of that name must be gone.
        """
        assert name not in self._going
        found = self._hosts.get(name)
        if found is None:
            found = self._hosts[name] = self._new(name)
        elif profile is None:
            return found
        found.profile = profile or found.profile
        self._write(found)
        return found

    def delete(self, vhost: VirtualHost, now_ms: int) -> None:
        """Begin to delete a virtual host: from now on it is not found, its connections are closed, all in it goes."""
        del self._hosts[vhost.name]
        self._going[vhost.name] = []
        self._write(vhost, is_going=True)
        self.chores.start(self._finish(vhost, now_ms), is_long=len(vhost.connections) > CLOSED_AT_ONCE)

    def _finish(self, vhost: VirtualHost, now_ms: int) -> Iterator[None]:
        yield from dismantle(vhost, now_ms, self.drop_rights(vhost.name))
        self._parts.policies.forget(vhost.name)
        self._table.delete(vhost.name.encode())
        self._broker.when_kept(partial(self._note_gone, vhost.name))  # as with each of its queues: see `TakenNames`

    def _note_gone(self, name: str, error: LmqError | None) -> None:
        del error  # what is done now is told of it, too
        for then in self._going.pop(name):
            then()

    def when_gone(self, name: str, then: Callable[[], object]) -> None:
        """Call back when nothing is left of a virtual host of that name that was deleted; at once where nothing is."""
        if name in self._going:
            self._going[name].append(then)
        else:
            then()

    def is_going(self, name: str) -> bool:
        """Return whether a virtual host of that name is being deleted."""
        return name in self._going

    def _new(self, name: str) -> VirtualHost:
        vhost = VirtualHost(name, self._parts, has_topic_space=name == self.topic_vhost)
        if vhost.exchanges.topic_space is not None:
            vhost.exchanges.topic_space.flow = topics = self._broker.flows.topics
            topics.whole = vhost.exchanges.flow
        return vhost

    def _write(self, vhost: VirtualHost, *, is_going: bool = False) -> None:
        self._table.put(vhost.name.encode(), dump_profile(vhost.profile, is_going=is_going))

    def find(self, name: str) -> VirtualHost | None:
        """Return a virtual host, or None."""
        return self._hosts.get(name)

    @property
    def topic_host(self) -> VirtualHost | None:
        """The virtual host whose `amq.topic` is the one topic space, None while it is deleted."""
        return self.find(self.topic_vhost)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._hosts)

    def __iter__(self) -> Iterator[VirtualHost]:
        """Give all of them."""
        return iter(list(self._hosts.values()))

    # Policies

    @property
    def policies(self) -> Policies:
        """The policies of all of them."""
        return self._parts.policies

    def put_policy(self, policy: Policy) -> bool:
        """Keep a policy, and have all that it is for hold to it, in steps; return whether it is a new one.

        Raises:
            InvalidPolicyError: It says what may not be.
        """
        is_new = self.policies.put(policy)
        self._rule(policy.vhost)
        return is_new

    def delete_policy(self, policy: Policy) -> None:
        """Forget a policy, and have all that it was for hold to what is left."""
        self.policies.delete(policy)
        self._rule(policy.vhost)

    def _rule(self, name: str) -> None:
        vhost = self.find(name)
        if vhost is not None:
            self.chores.start(vhost.rule(), is_long=len(vhost) > AT_ONCE)

    # Of all of them

    def floors(self) -> Iterator[tuple[int, int]]:
        """Give each queue and its first offset that is still needed: what retention must keep."""
        for vhost in self:
            yield from vhost.unopened_floors()  # first: one that is opened meanwhile is among the others
        for light_name, offset in self._broker.pop.floors(GROUP):
            yield self._broker.intern_queue(light_name), offset

    def expire_first(self, now_ms: int) -> None:
        """Let messages go on as dead letters whose time is over; called a few times a second, as clocks are set."""
        self._parts.expiries.on_ready(now_ms)
        self._parts.desk.open.settle()

    def remove_unused(self, now_ms: int) -> None:
        """Delete the queues whose lease is over; called about once a second, by which they may stay longer."""
        if not self._is_removing:
            self._is_removing = True
            self.chores.start(self._remove_unused(now_ms))

    def _remove_unused(self, now_ms: int) -> Iterator[None]:
        try:
            yield from self._parts.leases.run(now_ms)
        finally:
            self._is_removing = False

    def drop_expired(self, now_ms: int) -> None:
        """Finish the expired messages that stand first in their queues, in steps where there are many queues."""
        if not self._is_dropping:
            self._is_dropping = True
            self.chores.start(self._drop_expired(now_ms), is_long=True)

    def _drop_expired(self, now_ms: int) -> Iterator[None]:
        try:
            yield from self._head_looks.drop_expired(self, now_ms)
        finally:
            self._is_dropping = False

    def find_routes_anew(self) -> None:
        """Have everything found out anew that was computed of what may be published, and where it goes."""
        for vhost in self:
            vhost.exchanges.version += 1


def _nothing(name: str) -> Iterable[None]:
    del name
    return ()
