"""A queue of the model of a virtual host: its copies of messages, its consumers, and its terms."""

from __future__ import annotations

from dataclasses import dataclass, field

LEAST = ("x-message-ttl", "x-max-length", "x-expires", "x-delivery-limit")  # of arguments and policy the lesser one


@dataclass
class Copy:
    """One message in one queue."""

    number: int  # of what was published
    exchange: str
    key: str
    headers: dict
    priority: int
    ttl_ms: int | None
    size: int = 0  # of its body
    deaths: list = field(default_factory=list)  # the latest first: reason, queue, count, exchange, key, expiration
    first_death: tuple = ()  # exchange, queue, reason
    stored_ms: int = 0
    place: tuple = ()  # step, the queue that it died in (or refused it) or nothing, number
    level: int = 0
    given: int = 0  # times
    given_max: int = 0  # a kill in between leaves open whether it was given
    uid: int = 0
    copies: tuple = ()  # the header CC: more keys that it goes to
    hidden: tuple = ()  # the header BCC

    def keys(self):
        return {self.key, *self.copies, *self.hidden}


@dataclass
class Taker:
    """One consumer: room is None for any number."""

    rank: int
    room: int | None
    order: int
    exclusive: bool = False
    no_ack: bool = False


@dataclass
class Queue:
    """One queue; messages that are ready, those that were taken, and all that were ever there, in no order."""

    name: str
    arguments: dict
    ready: dict = field(default_factory=dict)  # copies by uid
    unacked: dict = field(default_factory=dict)
    ever: list = field(default_factory=list)  # all that came, in order
    ever_is_known: bool = True
    is_durable: bool = True
    takers: dict = field(default_factory=dict)  # by name
    policy: dict = field(default_factory=dict)
    left_in: int = 0  # the last step in which messages left it by themselves
    step: int = 0  # that is under way
    limits: dict = field(default_factory=dict)  # of the oracle
    owner: int | None = None  # the number of the client that has it to itself
    unused_ms: int | None = None  # when it was first seen without use, where it goes by that
    has_order: bool = True  # of letters that come in one step from one queue
    levels: dict = field(default_factory=dict)  # in use, each with the step in which its first message came

    def term(self, name):
        """Return an argument, or what a policy says; the lesser of both."""
        said = self.arguments.get(name), self.policy.get(name.removeprefix("x-"))
        if name in LEAST and None not in said:
            return min(said)
        return said[0] if said[0] is not None else said[1]

    def is_quorum(self):
        return self.arguments.get("x-queue-type") == "quorum"

    def delivery_limit(self):
        """Return how often a message is given back at most; None where that is not counted."""
        if not self.is_quorum():
            return None
        said = self.term("x-delivery-limit")
        return 20 if said is None else said

    def is_expired(self, one, now_ms):
        lives = [ms for ms in (one.ttl_ms, self.term("x-message-ttl")) if ms is not None]
        return bool(lives) and one.stored_ms + min(lives) <= now_ms

    def comes_before(self, one, other):
        """Return whether a message is before another; letters of this step may each have come before the others.

        An engine that answers late has the first messages of a level when it knows the level's light queue: consumers
        have lower ones meanwhile, as if those had come before.
        """
        if one.place[0] == self.step and one.place[1] and one.level != other.level:
            return False
        if one.level > other.level and not self.has_order and self.levels.get(one.level) == self.step:
            return False
        if one.level != other.level or one.place[0] != other.place[0]:
            return (-one.level, one.place[0]) < (-other.level, other.place[0])
        if "" in (one.place[1], other.place[1]):  # what is published is there before letters of this step are
            return (one.place[1] != "", one.place[2]) < (other.place[1] != "", other.place[2])
        return self.has_order and one.place[1] == other.place[1] and one.place[2] < other.place[2]

    def firsts(self, among=None):
        """Return those of `among` that may be the first: they come before all others, but for an order that is open."""
        among = list(self.ready.values()) if among is None else among
        return [one for one in among if not any(self.comes_before(other, one) for other in among if other is not one)]

    @property
    def has_exclusive(self):
        return any(one.exclusive for one in self.takers.values())

    def room_left(self):
        """Return how many messages its consumers have room for, None for any number."""
        takers = list(self.takers.items())
        if self.arguments.get("x-single-active-consumer"):
            takers = sorted(takers, key=lambda one: one[1].order)[:1]
        room = 0
        for number in {key[0] for key, _ in takers}:
            rooms = [None if one.no_ack else one.room for (client, _), one in takers if client == number]
            is_bound = number in self.limits and not any(one.no_ack for key, one in takers if key[0] == number)
            if None in rooms and not is_bound:
                return None
            limit = [self.limits[number]] if is_bound else []
            room += min([*([] if None in rooms else [sum(rooms)]), *limit])
        return room
