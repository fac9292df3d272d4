"""From a run of publishes to the log: targets of exchange and routing key, returns, numbers to confirm."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Sequence
from typing import cast

from pamqp.commands import Basic

from core import untracked
from core.broker import Broker
from core.cache_budget import Cache
from core.errors import DiskFullError, LmqError
from core.flows import Flow, Flows
from core.lmq.topic_space import topic_from_routing_key
from core.message import PublishBatch, Route
from core.metrics import DoorMetrics
from core.properties import AMQP, EXCHANGE, ROUTING_KEY, TOPIC, decode_properties, encode_properties
from core.reserved import OWN_ROOTS
from core.schedule.slots import TIMER_TOPIC
from gateway.amqp.codec import MANDATORY, PUBLISH
from gateway.amqp.errors import AmqpError, bad_text, error_from_core
from gateway.amqp.events import PublishRun
from gateway.amqp.exchanges import AMQ_TOPIC, TOPIC as KEYED, Exchange, exchange_right
from gateway.amqp.header_match import find_headers
from gateway.amqp.methods import encode_content, encode_method
from gateway.amqp.output import ConnectionOutput
from gateway.amqp.queues import VirtualHost
from gateway.amqp.reply_codes import ReplyCode
from gateway.amqp.routing import WaitingPlace, find_way
from gateway.amqp.traits import NO_BLOCK, Traits
from gateway.auth.credentials import Identity
from gateway.net.protocol import Transport

TARGET_BYTES = 120  # of a target, besides what it holds
ERROR_BYTES = 1_024  # of an error, with its text
NOT_NOW = -1  # what is looked at is published later
LOOK_COUNT = 16  # messages whose headers are looked at before the share of the turn is; chosen: a look costs a call
_MANDATORY = MANDATORY
_NONE: set[int] = set()  # never written to


class Target:
    """Where one pair of exchange and routing key leads: a topic of the one topic space, fixed queues, or nowhere.

    `asks_headers`: it is another place for each message, by its headers, or more of it, or by chance. `waits` are
    routes into the timer for copies of it; such a target serves one message. `flow` is that of the exchange.
    """

    __slots__ = ("asks_headers", "error", "flow", "route", "topic", "waits")

    def __init__(
        self,
        *,
        topic: bytes | None = None,
        route: Route | None = None,
        error: AmqpError | None = None,
        asks_headers: bool = False,
        waits: Sequence[Route] = (),
    ) -> None:
        self.topic = topic
        self.route = route
        self.error = error
        self.asks_headers = asks_headers
        self.waits = waits
        self.flow: Flow | None = None
        untracked.untrack(self)

    def measure(self, generation: int) -> int:
        """Return about how many bytes it takes."""
        size = TARGET_BYTES if self.topic is None else TARGET_BYTES + len(self.topic)
        if self.route is not None:
            size += self.route.measure(generation)
        return size if self.error is None else size + ERROR_BYTES


class Publisher:
    """What one connection publishes.

    Args:
        broker: Takes the batches.
        vhost: Knows the exchanges.
        identity: May it?
        metrics: The door's.
    """

    def __init__(self, broker: Broker, vhost: VirtualHost, identity: Identity, metrics: DoorMetrics) -> None:
        self._broker = broker
        self._vhost = vhost
        self._identity = identity
        self._metrics = metrics
        self._targets = Cache(broker.caches, "amqp_targets", Target.measure)
        self._version = -1
        self._may_version = -1
        self._now_ms = NOT_NOW
        self._flows: Flows = broker.flows
        self._passed: list[Flow | None] = []  # by route of the batch that is published

    def end(self) -> None:
        """Let go of what is kept: the connection is gone."""
        self._targets.clear()

    @property
    def has_topic_space(self) -> bool:
        """Whether `amq.topic` is MQTT's topics here."""
        return self._vhost.exchanges.topic_space is not None

    def look_anew(self) -> None:
        """Find out anew where the user may publish to: a later login may have changed it."""
        self._may_version = -1

    def publish(self, run: PublishRun, output: ConnectionOutput, transport: Transport | None, now_ms: int) -> None:
        """Publish a run; put what it is answered with at once into the output: the messages that come back.

        What is confirmed or refused is so later, for all of the run: what the batch's `appended` leaves out found no
        room. Before an error that the run ends with, everything that precedes the fault is published. Where all of it
        would be too much work, or the share of the turn that a `transport` has is over, the batch is cut: the rest was
        not published.

        Raises:
            AmqpError: An exchange is missing, internal or not allowed; the core refused a message.
        """
        batch = run.batch
        self._now_ms = now_ms
        fault = self._resolve(batch, run.copies, transport)
        if fault is not None:
            first = self._first_of(batch, fault[0])
            if first == batch.count:  # others are to have their turn before that message
                fault = None
            batch.count = first
        step = batch.find_step()
        if step < batch.count:
            batch.count = step
            fault = None
        if batch.count:
            answer = self._return_unroutable(run, output.payload_max, now_ms)
            if answer:
                output.put(answer)  # before the append: if that fails, the client is told after what came back
            self._append(run, now_ms)
        if fault is not None:
            self._metrics.refuse("publish")
            raise fault[1].with_traceback(None)  # it is kept, and would keep the frames of each time

    def check(self, run: PublishRun, transport: Transport) -> None:
        """Check that a run that is to wait for its commit could be published.

        Raises:
            AmqpError: As `publish`, of the first message that is at fault.
        """
        self._now_ms = NOT_NOW
        fault = self._resolve(run.batch, run.copies, transport)
        if fault is not None:
            run.batch.count = self._first_of(run.batch, fault[0])
            self._metrics.refuse("publish")
            raise fault[1].with_traceback(None)

    def _resolve(
        self, batch: PublishBatch, copies: dict[int, tuple[bytes, ...]], transport: Transport | None
    ) -> tuple[int, AmqpError] | None:
        """Fill the batch's routes; return index and error of the first target that may not be published to.

        The batch is cut where others are to have their turn before further routes are made.
        """
        version = self._vhost.exchanges.version
        may_version = self._identity.may.find_version()
        if version != self._version or may_version != self._may_version:
            self._targets.clear()
            self._version = version
            self._may_version = may_version
        fault = None
        asking: list[int] = []
        self._passed = passed = []
        router = self._broker.router
        made_count = router.made_count
        for i, raw in enumerate(batch.topics):
            if router.made_count != made_count:
                if transport is not None and transport.is_share_over():
                    batch.count = self._first_of(batch, i)
                    del batch.topics[i:]  # what is added by headers stands beside its route
                    break
                made_count = router.made_count
            target = self._targets.young.get(raw) if not copies else self._find_target(raw, copies.get(i, ()), None)
            if target is None:
                target = self._keep_target(raw)
                made_count -= 1
            elif not copies:
                self._targets.hits.count += 1
            if target.error is not None and fault is None:
                fault = (i, target.error)
            if target.asks_headers:
                asking.append(i)
            passed.append(target.flow)
            batch.routes.append(target.route if target.topic is None else self._broker.route_topic(target.topic))
        if asking:
            self._route_by_headers(batch, frozenset(asking), copies, transport)
        return fault

    def _route_by_headers(
        self,
        batch: PublishBatch,
        asking: frozenset[int],
        copies: dict[int, tuple[bytes, ...]],
        transport: Transport | None,
    ) -> None:
        """Give each message whose topic is one of `asking` a route of its own, or that of another with its headers.

        Where more than the headers decides, none but its own. The batch is cut where others are to have their turn.
        """
        index: dict[tuple[bytes, tuple[bytes, ...]], int] = {}
        is_found = False  # a way was: that may take a while where thousands are bound
        for i in range(batch.count):
            at = batch.route_index[i]
            if at not in asking:
                continue
            if transport is not None and i % LOOK_COUNT == LOOK_COUNT - 1 and transport.is_share_over():
                batch.count = i
                return
            raw = batch.topics[at]
            block = _block_of(batch, i)
            key = raw + b"\0" + find_headers(block)
            further = copies.get(at, ())
            if (key, further) not in index:
                target = None if further else cast("Target | None", self._targets.get(key))
                if target is None:
                    if is_found and transport is not None and transport.is_share_over():
                        batch.count = i
                        return
                    is_found = True
                    target = self._find_target(raw, further, block)
                    if not further and not target.asks_headers:
                        self._targets.put(key, target)
                if further:
                    copies[len(batch.topics)] = further
                batch.topics.append(raw)
                batch.routes.append(target.route)
                self._passed.append(target.flow)
                if target.asks_headers:
                    batch.waits.extend([(i, each) for each in target.waits])
                    batch.route_index[i] = len(batch.topics) - 1
                    continue
                index[key, further] = len(batch.topics) - 1
            batch.route_index[i] = index[key, further]

    def _keep_target(self, raw: bytes) -> Target:
        target = cast("Target | None", self._targets.get(raw))
        if target is None:
            target = self._find_target(raw, (), None)
            self._targets.put(raw, target)
        return target

    @staticmethod
    def _first_of(batch: PublishBatch, index: int) -> int:
        """Return the first message of a topic, the count of all where there is none."""
        for i in range(batch.count):
            if batch.route_index[i] == index:
                return i
        return batch.count

    def _find_target(self, raw: bytes, copies: tuple[bytes, ...], block: bytes | None) -> Target:
        """Return where exchange and routing key lead; `block` None: the message is not looked at yet."""
        key_at = 1 + raw[0]
        try:
            exchange, key = raw[1:key_at].decode(), raw[key_at + 1 :].decode()
            further = [copy.decode() for copy in copies]
        except UnicodeDecodeError:
            return Target(error=bad_text())
        try:
            target = self._target(exchange, key, further, block)
            target.flow = self._vhost.exchanges.get(exchange).flow
        except AmqpError as error:
            error.method_index = PUBLISH
            return Target(error=error)
        return target

    def _target(self, name: str, key: str, further: list[str], block: bytes | None) -> Target:
        vhost = self._vhost
        if not self._identity.may.may_write(vhost.name.encode(), exchange_right(name).encode()):
            raise self._refused(f"exchange '{exchange_right(name)}'", name, key)
        exchange = vhost.exchanges.get(name)
        if exchange.is_internal:
            reason = f"cannot publish to internal exchange '{name}' in vhost '{vhost.name}'"
            raise AmqpError(ReplyCode.ACCESS_REFUSED, reason)
        topic = self._check_key(exchange, key)
        is_topic_space = self._is_topic_space(name, topic)
        if is_topic_space and not further:
            return Target(topic=topic)
        for each in further:
            self._check_key(exchange, each)
        keys = [key, *further]
        traits = Traits(key, NO_BLOCK if block is None else block)
        way = find_way(vhost.exchanges, exchange, keys, traits)
        asks_each, held = way.asks_each, way.waits
        if block is None and (asks_each or way.asks_headers):
            return Target(asks_headers=True)
        names = vhost.light_names(way, keys)
        waits: list[Route] = []
        if held and self._now_ms != NOT_NOW:
            place = WaitingPlace(vhost.name, name, list(held), keys)
            waits = vhost.delays.hold(place, traits.delay_ms(), self._now_ms)
        if not names and not is_topic_space:
            route = waits.pop(0) if waits else None
            return Target(route=route, asks_headers=asks_each or bool(held), waits=waits)
        prefix = encode_properties([(TOPIC, topic)]) if is_topic_space else _prefix(topic, name.encode(), key.encode())
        route = self._broker.route_queues(prefix, names)
        return Target(route=route, asks_headers=asks_each or bool(held), waits=waits)

    def _check_key(self, exchange: Exchange, key: str) -> bytes:
        """Return the topic of a routing key that the user may publish to."""
        name, may = exchange.name, self._identity.may
        topic = topic_from_routing_key(key.encode())
        both = topic + name.encode()
        if b"\x00" in both or b"\x01" in both or b"\x02" in both:
            reason = "exchange or routing key has a character that cannot be stored (U+0000, U+0001 or U+0002)"
            raise AmqpError(ReplyCode.PRECONDITION_FAILED, reason)
        if self._is_topic_space(name, topic):
            is_allowed = not topic.startswith(OWN_ROOTS) and may.may_publish(topic)
        else:
            is_allowed = exchange.rule != KEYED or may.may_write_key(
                self._vhost.name.encode(), name.encode(), key.encode()
            )
        if not is_allowed:
            raise self._refused(f"topic '{key}' in exchange '{name}'", name, key)
        return topic

    def _refused(self, what: str, name: str, key: str) -> AmqpError:
        reason = f"write access to {what} in vhost '{self._vhost.name}' refused for user '{self._identity.user}'"
        may, topic = self._identity.may, topic_from_routing_key(key.encode())
        of_topic = what.startswith("topic") and self._is_topic_space(name, topic)
        by = may.find_decider("publish", topic) if of_topic else ""
        by = by or may.find_decider("write", exchange_right(name).encode(), self._vhost.name.encode())
        return AmqpError(ReplyCode.ACCESS_REFUSED, reason, denied=f"exchange '{name}' key '{key}'", by=by)

    def _is_topic_space(self, exchange: str, topic: bytes) -> bool:
        return exchange == AMQ_TOPIC and bool(topic) and self._vhost.exchanges.topic_space is not None

    def _return_unroutable(self, run: PublishRun, payload_max: int, now_ms: int) -> bytes:
        """Count what goes nowhere; return the frames that give back what had to go somewhere."""
        batch = run.batch
        routes = batch.routes
        lost: set[int] = set()
        for i, route in enumerate(routes):
            if route is None or not (route.dispatch.count or route.topic == TIMER_TOPIC):
                lost.add(i)
        strays = self._find_strays(batch, now_ms)
        if not lost and not strays:
            return b""
        returned: list[bytes] = []
        dropped = 0
        for i in range(batch.count):
            index = batch.route_index[i]
            if index not in lost and i not in strays:
                continue
            if batch.tag[i] & _MANDATORY:
                returned.append(_return_frames(batch, i, run.channel.number, payload_max))
            elif routes[index] is None:
                dropped += 1
        if dropped:
            self._metrics.drop("unroutable", dropped)
        if returned:
            self._metrics.drop("returned", len(returned))
        return b"".join(returned)

    def _find_strays(self, batch: PublishBatch, now_ms: int) -> set[int]:
        """Return mandatory messages that only exchanges behind `amq.topic` could take, and do not."""
        crossroads = self._broker.detours.crossroads
        if not crossroads.asked:
            return _NONE
        return crossroads.find_lost(batch, [i for i in range(batch.count) if batch.tag[i] & MANDATORY], now_ms)

    def _append(self, run: PublishRun, now_ms: int) -> None:
        """Append the batch; where the disk is full, a publisher that waits for confirms goes on with the others."""
        batch = run.batch
        count = batch.count
        self._metrics.messages_in += count
        self._metrics.bytes_in += body_bytes(batch)
        self._flows.add_batch(batch, self._passed)
        try:
            self._broker.publish_batch(batch, now_ms)
        except DiskFullError as error:
            self._metrics.refuse("disk_full", count - batch.appended)
            if not run.first_number:
                raise error_from_core(error, PUBLISH) from error
        except LmqError as error:
            self._metrics.refuse("publish", count - batch.appended)
            raise error_from_core(error, PUBLISH) from error


def body_bytes(batch: PublishBatch) -> int:
    """Return the bytes of the bodies of a batch."""
    size = 0
    for i in range(batch.count):
        size += batch.body_end[i] - batch.body_start[i]
    return size


def _prefix(topic: bytes, exchange: bytes, key: bytes) -> bytes:
    items = [(TOPIC, topic)] if topic else []
    items.append((EXCHANGE, exchange))
    if not topic or topic.replace(b"/", b".") != key or b"." in topic or b"%" in topic or b"*" in topic:
        items.append((ROUTING_KEY, key))  # else the topic says it
    return encode_properties(items)


def _return_frames(batch: PublishBatch, i: int, channel: int, payload_max: int) -> bytes:
    raw = batch.topics[batch.route_index[i]]
    key_at = 1 + raw[0]
    method = Basic.Return(reply_code=ReplyCode.NO_ROUTE, reply_text=ReplyCode.NO_ROUTE.name)
    method.exchange = raw[1:key_at].decode()
    method.routing_key = raw[key_at + 1 :].decode()
    block = _block_of(batch, i)
    body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
    return encode_method(method, channel) + encode_content(channel, block, body, payload_max)


def _block_of(batch: PublishBatch, i: int) -> bytes:
    """Return the property block of a message."""
    extra = bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]])
    return a2b_base64(decode_properties(extra)[AMQP])
