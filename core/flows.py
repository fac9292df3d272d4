"""How many messages were published at which place, such as an exchange, how many copies they became, and how fast.

Publishers count by the batch. What stands still costs nothing when rates are found out.
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


class Flows:
    """The flows that moved of late; `topics` is that of the one topic space, whatever door its messages came by.

    `changes` goes up with each look that may have found other rates than the one before.
    """

    __slots__ = ("_is_seen", "_moving", "changes", "topics")

    def __init__(self) -> None:
        self.changes = 0
        self.topics = Flow()
        self._moving: list[Flow] = []
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

    def look(self, passed_s: float) -> None:
        """Find the rates of all that moved in the last `passed_s` seconds, above 0; those that stand have none."""
        self._is_seen = True
        self.changes += 1 if self._moving else 0
        for flow in self._moving:
            flow.look(passed_s)
        self._moving = [flow for flow in self._moving if flow.is_moving]
