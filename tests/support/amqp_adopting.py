"""What queues hold after a kill in the middle of a step: what was there before it, behind it, or on the way."""

from __future__ import annotations

from tests.support.amqp_host import deaths_of, number_of


class Adopting:
    """Has a model go on with what is there, once that is seen to be possible.

    Args:
        before: The model before the step.
        after: The model behind it, which goes on.
        was_full: Whether the disk was full meanwhile.

    What is in `left` has not gone for good in the step, as the model says.
    """

    def __init__(self, before, after, *, was_full):
        self.before, self.after, self.was_full = before, after, was_full
        self.was = {
            uid: (name, one)
            for name, queue in before.queues.items()
            for uid, one in [*queue.ready.items(), *queue.unacked.items()]
        }
        self.found = set()  # uids
        self.left = {uid for queue in after.queues.values() if not self.may_drop(queue) for uid in queue.ready}

    def may_drop(self, queue):
        """Return whether it is left open what a queue drops: it has more again if consumers got some meanwhile."""
        limits = queue.term("x-max-length"), queue.term("x-max-length-bytes")
        return limits != (None, None) and bool(self.before.queues[queue.name].takers)

    def take(self, observed):
        """Take what queues hold: nothing is made up, or given less often than it was."""
        for name, queue in self.after.queues.items():
            queue.ever_is_known = False
            queue.levels = {}  # was the first message of one stored?
            queue.ready = {}
            for number, message in enumerate(observed[name]):
                one = self.find(name, message)
                if one is None:
                    return
                given = (message.properties.headers or {}).get("x-delivery-count", int(message.method.redelivered))
                least = one.given if queue.is_quorum() else min(one.given, 1)
                assert given >= least, (name, one, given)
                one.given = given
                if one.uid in self.after.created:  # others may have come before it meanwhile
                    one.place = *one.place[:2], number
                queue.ready[one.uid] = one

    def find(self, name, message):
        """Return the copy that a message is; None where the model can't know it."""
        like = number_of(message), deaths_of(message)
        for uid, (where, one) in (self.was | self.after.created).items():
            if where == name and uid not in self.found and (one.number, [each[:3] for each in one.deaths]) == like:
                self.found.add(uid)
                return one
        self.after.is_open |= self.was_full and bool(like[1])  # tried again later, it may die for another reason
        assert self.after.is_open, (name, like, "was never there")
        return None

    def check(self, confirmed, committed):
        """See that nothing is lost: `confirmed` numbers and what was there; `committed` ones are there, or none is."""
        for uid, (name, one) in self.was.items():
            is_to_stay = self.before.queues[name].is_durable and not self.may_be_spent(name, one)
            assert not is_to_stay or self.is_kept(uid), ("lost", name, one)
        roots = {}
        for uid, (name, one) in self.after.created.items():
            if not one.place[1] and self.before.queues[name].is_durable:
                roots.setdefault(one.number, []).append(uid)
        for number in confirmed & {*roots}:
            assert all(map(self.is_kept, roots[number])), ("lost", number)
        parts = [uid for number in committed & {*roots} for uid in roots[number]]
        if not self.was_full:  # a commit that fails leaves the messages before the fault
            assert self.found.isdisjoint(parts) or all(map(self.is_kept, parts)), ("a part of a commit", parts)

    def may_be_spent(self, name, one):
        """Return whether a connection that a full disk ends gives a message back once more than its queue allows."""
        queue = self.before.queues[name]
        limit = queue.delivery_limit() if self.was_full else None
        return limit is not None and one.given >= limit

    def is_kept(self, uid):
        """Return whether a message is there, or its letters are, and not both; or it went for good in the step."""
        letters = self.after.children.get(uid, [])
        if uid in self.found:
            assert not self.below(uid) & self.found, ("message and letter", uid)
            return True
        return all(map(self.is_kept, letters)) if letters else uid not in self.left

    def below(self, uid):
        """Return the letters of a message, and theirs."""
        letters = self.after.children.get(uid, [])
        return {*letters}.union(*map(self.below, letters))
