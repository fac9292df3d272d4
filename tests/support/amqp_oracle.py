"""A virtual host of AMQP in plain Python: lists of messages, and what RabbitMQ's rules make of them.

Who consumes is told it, as far as order and counts go: which of several consumers gets a message is for the test to
say. Messages that come in one step from several places have no order among one another.
"""

from __future__ import annotations

import copy

from tests.support.amqp_oracle_queue import Queue

EXPIRED, REJECTED, MAXLEN, LIMIT = "expired", "rejected", "maxlen", "delivery_limit"
DONE, PURGED = "acknowledged", "purged"


class Oracle:
    """Exchanges, bindings and queues."""

    def __init__(self, *, has_order=True):
        self.has_order = has_order  # of letters
        self.refused = []  # (queue, message): letters of the next turn
        self.queues = {}
        self.streams = {}  # by name: all that came, those of one step from several places in no order
        self.limits = {}  # by number of a client: how many more its consumers together have room for
        self.kinds = {"": "default"}  # of exchanges
        self.alternates = {}
        self.bindings = set()  # (source, is to a queue, name, key, headers)
        self.now_ms = self.step = self.uids = 0
        self.children = {}  # of those that died in this step, by uid: the uids of their letters
        self.created = {}  # copies by uid that came in this step: queue and copy
        self.is_open = False  # whether the rules leave open what became of a message
        self.policies = {}  # by queue: what is said of it
        self.orders = 0
        self.ends = {}  # how and when a copy left its queue, by uid
        self.either = set()  # uids of those that expired, or were dropped as a letter came at that moment

    def clone(self):
        return copy.deepcopy(self)

    def declare(self, name, arguments, *, durable=True):
        queue = Queue(name, arguments, is_durable=durable, has_order=self.has_order, step=self.step, limits=self.limits)
        self.queues[name] = queue

    def follow_policies(self):
        for name, queue in self.queues.items():
            queue.policy = self.policies.get(name, {})

    def count(self):
        self.orders += 1
        return self.orders

    # Routes

    def names(self):
        return {*self.queues, *self.streams}

    def route(self, made):
        """Return the names of the queues that a message reaches, by any of its keys."""
        keys, headers = made.keys(), made.headers
        found, seen, waiting = set(), {made.exchange}, [made.exchange]
        while waiting:
            source = waiting.pop()
            if source == "":
                found |= keys & self.names()
                continue
            matched = [one for one in self.bindings if one[0] == source and self.matches(one, keys, headers)]
            found |= {name for _, is_queue, name, _, _ in matched if is_queue and name in self.names()}
            further = {name for _, is_queue, name, _, _ in matched if not is_queue}
            if not matched and source in self.alternates and self.alternates[source] in self.kinds:
                further = {self.alternates[source]}
            waiting += further - seen
            seen |= further
        return found

    def matches(self, binding, keys, headers):
        source, _, _, binding_key, arguments = binding
        kind = self.kinds[source]
        if kind == "fanout":
            return True
        if kind == "direct":
            return binding_key in keys
        if kind == "topic":
            return any(matches_topic(binding_key.split("."), key.split(".")) for key in keys)
        said = dict(arguments)
        how = said.pop("x-match")
        hits = [headers.get(name) == value for name, value in said.items()]
        return all(hits) if how == "all" else any(hits)

    # Messages come and go

    def begin_step(self):
        self.step += 1
        self.children, self.created = {}, {}
        for queue in self.queues.values():
            queue.step = self.step

    def publish(self, made):
        """Let a message come; return the queues that it reaches, and those that refuse it."""
        targets = self.route(made)
        reached = targets & {*self.streams}
        for name in reached:
            self.keep(name, made, "")
        targets -= reached
        refusing = {name for name in targets if self.is_full(self.queues[name])}
        for name in targets - refusing:
            self.enter(self.queues[name], made, "")
        for name in refusing:
            self.refuse(self.queues[name], made)
        return targets | reached, refusing

    def keep(self, stream, made, source):
        """Let a message come to a stream, which has it for good."""
        one = copy.copy(made)
        one.stored_ms, one.place = self.now_ms, (self.step, source, 0)
        self.streams[stream].append(one)

    def is_full(self, queue):
        length = queue.term("x-max-length")
        if not self.is_refusing(queue):
            return False
        self.is_open |= queue.term("x-max-length-bytes") is not None
        self.is_open |= bool(self.limits and queue.takers)  # queues share that room
        self.is_open |= not self.has_order and self.step in queue.levels.values()  # is what came counted yet?
        if length is None:
            return False
        room = queue.room_left()
        if length == 0:
            return True
        return room is not None and len(queue.ready) >= length + room

    def refuse(self, queue, made):
        if queue.term("x-overflow") == "reject-publish-dlx":
            self.refused.append((queue, made))

    def enter(self, queue, made, source):
        one = copy.copy(made)
        self.uids += 1
        one.uid, one.given, one.given_max, one.stored_ms = self.uids, 0, 0, self.now_ms
        one.level = min(one.priority or 0, queue.arguments.get("x-max-priority", 0))
        one.place = self.step, source, self.uids
        if one.level:  # the lowest is there with the queue
            queue.levels.setdefault(one.level, self.step)
        if "x-max-priority" in queue.arguments and source:  # were expired ones there still?
            self.is_open |= self.is_leaving(queue)
        limits = queue.term("x-max-length"), queue.term("x-max-length-bytes")
        if source and not self.has_order and limits != (None, None):
            self.either |= {each.uid for each in queue.ever if self.ends.get(each.uid) == (EXPIRED, self.now_ms)}
        queue.ready[one.uid] = one
        queue.ever.append(one)
        self.created[one.uid] = queue.name, one
        return one.uid

    def is_leaving(self, queue):
        """Return whether messages leave a queue in this step by themselves: before or after others come is open."""
        return queue.left_in == self.step or any(queue.is_expired(each, self.now_ms) for each in queue.ready.values())

    def die(self, queue, one, reason):
        """Let a message that is in no list any more become a dead letter, where there is an exchange for it."""
        self.note_end(one.uid, reason)
        self.bury(queue, one, reason)

    def bury(self, queue, one, reason):
        """Let a message become a dead letter; a queue may refuse it before it ever was there."""
        exchange = queue.term("x-dead-letter-exchange")
        if exchange is None or exchange not in self.kinds:
            return
        letter = copy.copy(one)
        same = [each for each in one.deaths if each[:2] == (reason, queue.name)]
        latest = (reason, queue.name, 1, one.exchange, [one.key, *one.copies], one.ttl_ms)
        if same:
            latest = (*same[0][:2], same[0][2] + 1, *same[0][3:])
        letter.deaths = [latest] + [each for each in one.deaths if each not in same]
        letter.first_death = one.first_death or (one.exchange, queue.name, reason)
        letter.ttl_ms, letter.exchange = None, exchange
        said = queue.term("x-dead-letter-routing-key")
        letter.key, letter.hidden = one.key if said is None else said, ()
        letter.copies = one.copies if said is None else ()
        targets = self.route(letter)
        targets = {name for name in targets if not is_cycle(name, letter.deaths)}
        for name in targets & {*self.streams}:
            self.keep(name, letter, queue.name)
        for target in map(self.queues.get, targets - {*self.streams}):
            self.is_open |= self.is_refusing(target) and self.is_leaving(target)
            if self.is_full(target):
                self.refuse(target, letter)
            else:
                is_refused = reason == MAXLEN and self.is_refusing(queue)  # they wait beside those that it has
                uid = self.enter(target, letter, f"{queue.name} refused" if is_refused else queue.name)
                self.children.setdefault(one.uid, []).append(uid)

    def note_end(self, uid, how):
        self.ends[uid] = how, self.now_ms

    # What clients do

    def find_first(self, name, number, deaths):
        """Return the copies that a client may be given now and that are like this one."""
        queue = self.queues[name]
        alive = [one for one in queue.ready.values() if not queue.is_expired(one, self.now_ms) or self.is_fresh(one)]
        firsts = queue.firsts(alive)
        return [one for one in firsts if one.number == number and [each[:3] for each in one.deaths] == deaths]

    def take(self, name, number, deaths, *, no_ack):
        """Let a message be given to a client: it is one of the first; return the copy."""
        queue = self.queues[name]
        kinds = self.find_first(name, number, deaths)
        assert kinds, (name, "gives", number, deaths, "has", list(queue.ready.values()))
        one = queue.ready.pop(kinds[0].uid)
        one.given += 1
        one.given_max += 1
        if no_ack:
            self.note_end(one.uid, DONE)
        else:
            queue.unacked[one.uid] = one
        return one

    def is_fresh(self, one):
        return one.place[0] == self.step and not one.given

    def settle(self, name, uid, how):
        """Acknowledge, reject or give back."""
        queue = self.queues.get(name)
        one = queue and queue.unacked.pop(uid, None)
        if one is None:  # its queue was deleted
            return
        limit = queue.delivery_limit()
        if how == "ack":
            self.note_end(uid, DONE)
        elif how == "reject":
            self.die(queue, one, REJECTED)
        elif limit is not None and one.given > limit:
            self.die(queue, one, LIMIT)
        else:
            queue.ready[uid] = one

    def purge(self, name):
        queue = self.queues[name]
        for uid in queue.ready:
            self.note_end(uid, PURGED)
        count = len(queue.ready)
        queue.ready.clear()
        return count

    def delete(self, name):
        del self.queues[name]
        self.bindings = {one for one in self.bindings if not (one[1] and one[2] == name)}

    def end_leases(self):
        """Delete queues that were unused for as long as they may be: what is looked at once a second."""
        for queue in list(self.queues.values()):
            lease_ms = queue.arguments.get("x-expires")
            if lease_ms is None:
                continue
            if queue.takers:
                queue.unused_ms = None
            elif queue.unused_ms is None:
                queue.unused_ms = self.now_ms
            elif self.now_ms - queue.unused_ms >= lease_ms:
                self.is_open |= any(self.is_leaving(one) for one in self.queues.values())  # before it goes, or after?
                self.delete(queue.name)

    def delete_stream(self, name):
        del self.streams[name]
        self.bindings = {one for one in self.bindings if not (one[1] and one[2] == name)}

    def let_all_go(self):
        while self.let_go():
            pass

    def let_go(self):
        """Let go what is too old or too much; return whether anything went. Consumers have what comes by that first."""
        until = self.uids
        refused, self.refused = self.refused, []
        for queue, made in refused:
            self.bury(queue, made, MAXLEN)
        went = bool(refused)
        for queue in self.queues.values():
            while reason := self.find_reason(queue, until):
                firsts = queue.firsts()
                self.is_open |= len(firsts) > 1 or (reason == MAXLEN and queue.is_expired(firsts[0], self.now_ms))
                first = firsts[0]
                if reason == EXPIRED:
                    first = next(one for one in firsts if queue.is_expired(one, self.now_ms))
                del queue.ready[first.uid]
                queue.left_in = self.step
                self.die(queue, first, reason)
                went = True
        return went

    def find_reason(self, queue, until):
        """Return why the first message of a queue goes, None where it stays; what came behind the uid `until` stays."""
        length, size = queue.term("x-max-length"), queue.term("x-max-length-bytes")
        if not self.is_refusing(queue) and any(uid <= until for uid in queue.ready):
            if length is not None and len(queue.ready) > length:
                return MAXLEN
            if size is not None and sum(one.size for one in queue.ready.values()) > size:
                return MAXLEN
        expired = any(one.uid <= until and queue.is_expired(one, self.now_ms) for one in queue.firsts())
        return EXPIRED if expired else None

    @staticmethod
    def is_refusing(queue):
        return queue.term("x-overflow") in ("reject-publish", "reject-publish-dlx")

    def end_process(self):
        """End the process: what clients had is there again."""
        self.limits.clear()
        for queue in list(self.queues.values()):
            if not queue.is_durable:
                self.delete(queue.name)
            queue.ready |= queue.unacked
            queue.unacked.clear()
            queue.takers.clear()
            queue.unused_ms = None


def is_cycle(name, deaths):
    for reason, died_in, *_ in deaths:
        if reason == REJECTED:
            return False
        if died_in == name:
            return True
    return False


def matches_topic(pattern, words):
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(matches_topic(pattern[1:], words[i:]) for i in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and matches_topic(pattern[1:], words[1:])
