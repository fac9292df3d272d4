"""How many messages were published at which place, how many copies they became, what clients took of it, and how fast.

Publishers and consumers count by the batch. What stands still costs nothing when rates are found out.
"""

from __future__ import annotations

from core.message import PublishBatch

UNSEEN_MAX = 1_024  # flows that are known to move where nobody has looked: without an admin door nobody does
_UNSEEN_MAX = UNSEEN_MAX


class Flow:
    """What was published at one place since the start; copies are the entries that routes led to in light queues.

    `rate_in` and `rate_out` are messages and copies a second, as `Flows.look` found them last.

    Args:
        whole: The flow of a greater place that this one is a part of, such as a virtual host; all is counted there too.
    """

    __slots__ = ("_seen_in", "_seen_out", "is_moving", "published_in", "published_out", "rate_in", "rate_out", "whole")

    def __init__(self, whole: Flow | None = None) -> None:
        self.published_in = 0
        self.published_out = 0
        self.rate_in = 0.0
        self.rate_out = 0.0
        self.whole = whole
        self.is_moving = False  # known to `Flows`
        self._seen_in = 0
        self._seen_out = 0

    def look(self, passed_s: float) -> None:
        """Find the rates since the last look, or since it stood still, which is `passed_s` seconds ago, above 0."""
        self.rate_in = (self.published_in - self._seen_in) / passed_s
        self.rate_out = (self.published_out - self._seen_out) / passed_s
        self.is_moving = self.published_in != self._seen_in
        self._seen_in = self.published_in
        self._seen_out = self.published_out


class Outflow:
    """What clients took of a place since the start: messages, and for `got_nothing` questions.

    Consumers are delivered messages, which they acknowledge or, by `no_ack`, do not; others get them one by one.
    `rates` has what `counts` has, a second, as `Flows.look` found it last.
    """

    __slots__ = (
        "_flows",
        "_seen",
        "acked",
        "delivered",
        "delivered_no_ack",
        "got",
        "got_no_ack",
        "got_nothing",
        "is_moving",
        "rates",
        "redelivered",
    )

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self.delivered = 0
        self.delivered_no_ack = 0
        self.got = 0
        self.got_no_ack = 0
        self.got_nothing = 0
        self.redelivered = 0  # of those delivered and got
        self.acked = 0
        self.is_moving = False  # known to `Flows`
        self._seen = self.counts()
        self.rates = (0.0,) * len(self._seen)

    def counts(self) -> tuple[int, ...]:
        """Return delivered, delivered without acknowledgement, got, got so, got nothing, redelivered, acknowledged."""
        delivered, got = (self.delivered, self.delivered_no_ack), (self.got, self.got_no_ack, self.got_nothing)
        return (*delivered, *got, self.redelivered, self.acked)

    def add_delivered(self, count: int, no_ack: bool) -> None:  # noqa: FBT001 - a C function has no keywords
        """Count messages that a consumer was sent."""
        if no_ack:
            self.delivered_no_ack += count
        else:
            self.delivered += count
        if not self.is_moving:
            self._flows.watch(self)

    def add_got(self, no_ack: bool, is_again: bool) -> None:  # noqa: FBT001 - as above
        """Count a message that a client asked for and got."""
        if no_ack:
            self.got_no_ack += 1
        else:
            self.got += 1
        if is_again:
            self.redelivered += 1
        if not self.is_moving:
            self._flows.watch(self)

    def add_got_nothing(self) -> None:
        """Count a question that found no message."""
        self.got_nothing += 1
        if not self.is_moving:
            self._flows.watch(self)

    def add_acked(self, count: int) -> None:
        """Count messages that clients acknowledged."""
        self.acked += count
        if not self.is_moving:
            self._flows.watch(self)

    def has_moved(self) -> bool:
        """Return whether anything was counted since the last look."""
        return self.counts() != self._seen

    def look(self, passed_s: float) -> None:
        """Find the rates, as `Flow.look` does."""
        counts = self.counts()
        self.rates = tuple([(now - before) / passed_s for now, before in zip(counts, self._seen, strict=True)])
        self.is_moving = counts != self._seen
        self._seen = counts


class Flows:
    """The flows that moved of late; `topics` is that of the one topic space, whatever door its messages came by.

    `changes` goes up with each look that may have found other rates than the one before.
    """

    __slots__ = ("_is_seen", "_moving", "_taken", "changes", "topics")

    def __init__(self) -> None:
        self.changes = 0
        self.topics = Flow()
        self._moving: list[Flow] = []
        self._taken: list[Outflow] = []  # those that moved
        self._is_seen = False  # somebody looks

    def add(self, flow: Flow, messages: int, copies: int) -> None:
        """Count messages of a flow, and the copies that they became."""
        flow.published_in += messages
        flow.published_out += copies
        if not flow.is_moving and (self._is_seen or len(self._moving) < _UNSEEN_MAX):
            flow.is_moving = True
            self._moving.append(flow)
        if flow.whole is not None:
            self.add(flow.whole, messages, copies)

    def add_topics(self, batch: PublishBatch) -> None:
        """Count the messages of a batch that have a route, all of which are of the one topic space."""
        routes = batch.routes
        count = batch.count
        messages = 0
        copies = 0
        if len(routes) == 1:
            route = routes[0]
            if route is not None:
                messages = count
                copies = count * route.dispatch.count
        else:
            for i in range(count):
                route = routes[batch.route_index[i]]
                if route is not None:
                    messages += 1
                    copies += route.dispatch.count
        if messages:
            self.add(self.topics, messages, copies)

    def add_batch(self, batch: PublishBatch, flows: list[Flow | None]) -> None:
        """Count the messages of a batch, those without a route too.

        Args:
            batch: It.
            flows: Of each of its routes the flow; None where no message has that route.
        """
        routes = batch.routes
        count = batch.count
        if len(flows) == 1:
            flow = flows[0]
            route = routes[0]
            if flow is not None:
                self.add(flow, count, 0 if route is None else count * route.dispatch.count)
            return
        last: Flow | None = None  # most messages beside each other are of one flow, and are counted together
        messages = 0
        copies = 0
        for i in range(count):
            at = batch.route_index[i]
            flow = flows[at]
            if flow is not last:
                if last is not None:
                    self.add(last, messages, copies)
                last = flow
                messages = 0
                copies = 0
            route = routes[at]
            messages += 1
            copies += 0 if route is None else route.dispatch.count
        if last is not None:
            self.add(last, messages, copies)

    def watch(self, outflow: Outflow) -> None:
        """Note that one moves."""
        if not outflow.is_moving and (self._is_seen or len(self._taken) < _UNSEEN_MAX):
            outflow.is_moving = True
            self._taken.append(outflow)

    def look(self, passed_s: float) -> None:
        """Find the rates of all that moved in the last `passed_s` seconds, above 0; those that stand have none."""
        self._is_seen = True
        self.changes += 1 if self._moving or self._taken else 0
        for outflow in self._taken:
            outflow.look(passed_s)
        self._taken = [outflow for outflow in self._taken if outflow.is_moving]
        for flow in self._moving:
            flow.look(passed_s)
        self._moving = [flow for flow in self._moving if flow.is_moving]
