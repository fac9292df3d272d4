"""One bridge: a lasting session of our own broker on this side, a client of another broker on the other.

While the other broker is away nothing is taken from the session: what goes out waits in the log, at its cursors. A
message is acknowledged on the side that it came from when the other side has it.

Source: docs/protocols/bridges.md, docs/decisions/0032-bridges-are-sessions.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from core.errors import LmqError
from core.metrics import BridgeMetrics
from gateway.bridges import packets
from gateway.bridges.echoes import Echo, Echoes
from gateway.bridges.local_link import Filters, LocalLink, Now, Opened
from gateway.bridges.packets import FAILURE, Delivery
from gateway.bridges.remote import Message, Remote, RemoteError, items_of, outgoing_items, own_client_id, wait_for_first
from gateway.bridges.remote_filters import RemoteFilters
from gateway.bridges.rules import Rule, Rules, matches
from gateway.mqtt.properties import Property, Value
from gateway.settings.bridges import BridgeSettings

LOGGER = logging.getLogger(__name__)

MARK = b"x-lmq-bridge"  # a user property for each bridge that a message went through: its name at the other broker
READY_S = 30.0  # for our own door to let the session in; chosen: a start with many sessions takes seconds
STOP_S = 1.0  # to say farewell, of the 5 s in which the gateway stops
STOOD_S = 10.0  # a connection that stood so long was no failed attempt
WAITING_BYTES_MAX = 256 * 1024  # of deliveries that were not handed on yet; then the door waits


class OwnSide(NamedTuple):
    """What a bridge has of its gateway."""

    session: bytes  # the client identifier of its session
    connect: Opened
    find_filters: Filters
    begin_read: Now
    marks: set[bytes]  # of all bridges of the gateway: what carries one came from here
    remote_filters: RemoteFilters
    takes: Callable[[bytes], bool]  # whether a topic is one that can be published to here
    find_bridges: Callable[[], Iterable[Bridge]]  # all of the gateway


class Bridge:
    """One bridge.

    Args:
        name: What operators call it.
        settings: Where it leads, and what it carries.
        own: Its gateway.
        metrics: What it counts.
    """

    def __init__(self, name: str, settings: BridgeSettings, own: OwnSide, metrics: BridgeMetrics) -> None:
        self.name = name
        self._settings = settings
        self._own = own
        self._metrics = metrics
        metrics.address = settings.address
        self._rules = Rules(settings)
        self._outgoing_rules = list(self._rules.outgoing.values())
        self._client_id = own_client_id(settings, name)
        self._mark = self._client_id.encode()
        own.marks.add(self._mark)
        self._link = self._make_link()
        self._waiting: deque[Delivery] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sending: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.inflight_max)
        self._is_private = False  # this connection tells that it is a bridge's
        self._has_carried = False  # something may have been delivered by the present link
        self._remote: Remote | None = None  # while it is connected
        self._echoes = Echoes()
        self._is_echoed = False  # this connection is sent what it publishes
        self._task: asyncio.Task[None] | None = None

    @property
    def place(self) -> str:
        """Which session of which broker the bridge has on the other side."""
        return place_of(self._settings, self.name)

    def open(self) -> asyncio.Future[None]:
        """Take up the session; return what is done when it has its filters, or cannot have them."""
        self._link.open(self._own.connect)
        return self._link.ready

    def start(self) -> None:
        """Go on trying to reach the other broker."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self, *, for_good: bool = False) -> None:
        """End the connection to the other broker, and leave the session.

        Args:
            for_good: Nobody comes back to the other broker's session: what it is subscribed to is given up.
        """
        if for_good:
            self._own.marks.discard(self._mark)
            await self._leave_filters()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=STOP_S)
        self._link.end()

    async def _leave_filters(self) -> None:
        filters = self._own.remote_filters.find(self.name, self.place)
        if self._remote is not None and filters:
            with contextlib.suppress(RemoteError):
                await self._remote.unsubscribe(sorted(filters), timeout=STOP_S)

    # The session's side

    def on_delivery(self, delivery: Delivery) -> None:
        """A message is to go out."""
        self._waiting.append(delivery)
        self._waiting_bytes += len(delivery.body)
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._link.is_writable = False
        self._arrived.set()

    def on_link_lost(self, why: str) -> None:
        """Our own door ended the session's connection."""
        self._fail(RemoteError(why))

    def _make_link(self) -> LocalLink:
        own, settings = self._own, self._settings
        asked = packets.connect(own.session, settings.inflight_max)
        return LocalLink(asked, self._rules, self, own.begin_read, own.find_filters)

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)

    # Connections, one after the other

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        attempts = 0
        while True:
            began_s = loop.time()
            try:
                await self._carry()
            except (RemoteError, LmqError, OSError, ValueError, TimeoutError) as error:
                cause = str(error) or type(error).__name__  # not the error, which would keep its socket
            except asyncio.CancelledError:
                if self._task is None:
                    raise
                cause = "its session was ended"
            else:
                cause = "the other broker closed the connection"
            self._metrics.failures += 1
            self._metrics.cause = cause
            attempts = 0 if loop.time() - began_s > STOOD_S else attempts + 1
            delay_ms = self._delay_ms(max(attempts - 1, 0))
            text = "bridge is down bridge=%s address=%s cause=%s retry_ms=%d"
            LOGGER.warning(text, self.name, self._settings.address, cause, delay_ms)
            if self._has_carried or self._failed.done():  # else its session may be on the way to its first filters
                self._renew()
            await asyncio.sleep(delay_ms / 1000)

    def _delay_ms(self, attempts: int) -> int:
        """Return how long to wait: doubled each time, half of it by chance, so that bridges do not come together."""
        settings = self._settings
        longest = min(settings.retry_max_ms, settings.retry_min_ms << min(attempts, 30))
        return longest // 2 + random.randrange(longest // 2 + 1)  # noqa: S311 - nothing is secret

    def _renew(self) -> None:
        """Leave the session and take it up anew: what was on its way out is delivered again."""
        for task in self._sending:
            task.cancel()
        self._sending.clear()
        self._has_carried = False
        self._link.end()
        self._waiting.clear()
        self._waiting_bytes = 0
        self._arrived.clear()
        if self._failed.done() and not self._failed.cancelled():
            self._failed.exception()  # so that the loop does not say that nobody asked for it
        self._failed = asyncio.get_running_loop().create_future()
        self._slots = asyncio.Semaphore(self._settings.inflight_max)
        self._link = self._make_link()
        self._link.open(self._own.connect)

    async def _carry(self) -> None:
        """Carry messages until one of the two sides ends it."""
        settings, metrics = self._settings, self._metrics
        self._is_private = settings.try_private and not self._is_private  # a broker that does not know it says no
        remote = Remote(
            settings, self._client_id, self._password(), self._note_refused, partial(metrics.drop, "unread")
        )
        self._is_echoed = not (remote.is_5 or self._is_private)
        if self._is_private:
            remote.say_bridge()
        link = self._link
        async with remote:
            await asyncio.wait_for(asyncio.shield(link.ready), READY_S)
            self._echoes.reconnect(asyncio.get_running_loop().time(), is_resumed=remote.is_resumed)
            await self._listen(remote)
            try:
                self._remote = remote
                await self._tell_status(remote, b"1")
                metrics.is_connected, metrics.cause = True, ""
                metrics.connects += 1
                self._is_private = not self._is_private  # the next one is made the same way
                LOGGER.info(
                    "bridge stands bridge=%s address=%s client=%s", self.name, settings.address, self._client_id
                )
                self._has_carried = True
                link.start()
                loop = asyncio.get_running_loop()
                await wait_for_first(
                    [loop.create_task(self._send_all(remote)), loop.create_task(self._take_all(remote)), self._failed]
                )
            finally:
                self._remote = None
                metrics.is_connected = False
                with contextlib.suppress(RemoteError):
                    await self._tell_status(remote, b"0")

    async def _listen(self, remote: Remote) -> None:
        """Subscribe at the other broker to what comes in, and give up there what does so no more.

        What is asked for is written down before, so that a process that is killed meanwhile gives it up later.
        """
        kept = self._own.remote_filters
        wanted = {rule.topic_filter for rule in self._rules.incoming}
        before = kept.find(self.name, self.place) if self._settings.carries_in else wanted  # else the session is new
        await kept.keep(self.name, self.place, wanted | before)
        refused = await remote.listen((rule.topic_filter, rule.qos) for rule in self._rules.incoming)
        for name in refused:
            LOGGER.warning("the other broker refused a subscription bridge=%s filter=%s", self.name, name)
        if before - wanted:
            await remote.unsubscribe(sorted(before - wanted))
            await kept.keep(self.name, self.place, wanted)

    async def _tell_status(self, remote: Remote, body: bytes) -> None:
        if self._settings.status_topic:
            await remote.publish(self._settings.status_topic, body, 1, retain=True, timeout=STOP_S)

    def _password(self) -> str | None:
        """Return the password; its file is read each time, so that it may change.

        Raises:
            OSError: There is no such file.
        """
        settings = self._settings
        if settings.password_file is not None:
            return settings.password_file.read_text(encoding="utf-8").rstrip("\r\n")
        return os.environ.get(settings.password_env) if settings.password_env else None

    # What goes out

    async def _send_all(self, remote: Remote) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._slots.acquire()
                delivery = self._waiting.popleft()
                self._waiting_bytes -= len(delivery.body)
                if not self._link.is_writable and self._waiting_bytes <= WAITING_BYTES_MAX // 2:
                    self._link.start()
                task = asyncio.get_running_loop().create_task(self._send(remote, delivery))
                self._sending.add(task)
                task.add_done_callback(partial(self._note_sent, self._slots))

    def _note_sent(self, slots: asyncio.Semaphore, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        slots.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error if isinstance(error, Exception) else RemoteError(str(error)))

    async def _send(self, remote: Remote, delivery: Delivery) -> None:
        """Send a message to where its filter's rules lead, and acknowledge it."""
        link, metrics = self._link, self._metrics
        items = outgoing_items(delivery.properties)
        if self._is_marked(items, self._mark):
            metrics.drop("loop")
        else:
            items.append((Property.USER, (MARK, self._mark)))
            for rule in self._rules_of(delivery):
                topic = rule.rename(delivery.topic.decode())
                qos = min(delivery.qos, rule.qos)
                expected = [(one, one.expect_echo(self, topic, delivery.body)) for one in self._own.find_bridges()]
                if await remote.send(topic, delivery.body, qos, items, is_retained=delivery.is_retained):
                    metrics.messages_out += 1
                    for _, echo in expected:
                        if echo is not None:
                            echo.is_sure = echo.is_kept and qos > 0
                else:
                    metrics.drop("too_large")
                    for one, echo in expected:
                        one.cancel_echo(echo)
        link.acknowledge(delivery)

    def expect_echo(self, sender: Bridge, topic: str, body: bytes) -> Echo | None:
        """Wait for a message that `sender` is about to send, where the other broker gives it back unmarked."""
        if not self._rules.incoming or not self._hears(sender):
            return None
        granted = [rule.qos for rule in self._rules.incoming if matches(rule.topic_filter, topic)]
        if not granted:
            return None
        return self._echoes.expect(topic, body, asyncio.get_running_loop().time(), is_kept=max(granted) > 0)

    def cancel_echo(self, echo: Echo | None) -> None:
        """Wait no more for a message that did not go out."""
        if echo is not None:
            self._echoes.cancel(echo)

    def _hears(self, sender: Bridge) -> bool:
        """Return whether messages that `sender` sends come back by this bridge, without the mark of their sender."""
        if sender is self:
            return self._is_echoed
        settings, other = self._settings, sender._settings
        return settings.address == other.address and {settings.version, other.version} != {"5"}

    def _rules_of(self, delivery: Delivery) -> list[Rule]:
        number = delivery.properties.number(Property.SUBSCRIPTION_ID, 0)
        return self._outgoing_rules[number - 1] if 0 < number <= len(self._outgoing_rules) else []

    def _note_refused(self, why: str) -> None:
        self._metrics.drop("refused")
        LOGGER.debug("the other broker refused a message bridge=%s reason=%s", self.name, why)

    # What comes in

    async def _take_all(self, remote: Remote) -> None:
        async for message in remote.messages:
            await self._link.drained.wait()
            self._take(remote, message)

    def _take(self, remote: Remote, message: Message) -> None:
        topic = str(message.topic)
        rule = next((rule for rule in self._rules.incoming if matches(rule.topic_filter, topic)), None)
        items = items_of(message)
        is_loop = any(self._is_marked(items, mark) for mark in self._own.marks)
        if len(self._echoes) and not (message.retain and self._is_echoed):  # with the flag it was stored before, there
            is_loop = is_loop or self._echoes.take(topic, message.payload, asyncio.get_running_loop().time())
        if rule is None or is_loop:
            self._metrics.drop("loop" if rule is not None else "unwanted")
            remote.settle(message)
            return
        name = rule.rename(topic).encode()
        if not self._own.takes(name):  # our door would close the connection, and meet the message again
            self._note_taken(remote, message, FAILURE)
            return
        items = [*items, (Property.USER, (MARK, self._mark))]  # a ring may go the other way round: from in to in
        then = partial(self._note_taken, remote, message)
        self._link.publish(name, message.payload, min(message.qos, 1), items, is_retained=message.retain, then=then)

    def _note_taken(self, remote: Remote, message: Message, code: int) -> None:
        if code < FAILURE:
            self._metrics.messages_in += 1
        else:
            self._metrics.drop("refused_here")
        remote.settle(message)

    @staticmethod
    def _is_marked(items: Iterable[tuple[Property, Value]], mark: bytes) -> bool:
        return any(name == Property.USER and value == (MARK, mark) for name, value in items)


def place_of(settings: BridgeSettings, name: str) -> str:
    """Return which session of which broker a bridge has on the other side."""
    return f"{own_client_id(settings, name)}@{settings.address}"
