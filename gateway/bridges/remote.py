"""The other broker of a bridge, through aiomqtt: a client that says when a message has arrived, both ways."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import aiomqtt
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.address import parse_address
from gateway.bridges.packets import FAILURE, NEVER_S
from gateway.mqtt.properties import Properties, Property, Value
from gateway.settings.bridges import BridgeSettings

_SILENT = logging.getLogger(f"{__name__}.client")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False  # what the client says of a connection that breaks, it raises as well

RemoteError = aiomqtt.MqttError
Message = aiomqtt.Message
UNREAD_MAX = 10_000  # messages at QoS 0 that came and wait to be stored here; what is more is dropped
SPARE_CALLS = 16  # beside those of messages, before aiomqtt warns of many
_PUBLISH_OVERHEAD = 16  # fixed header, lengths and packet identifier
_PAYLOAD_MAX = 268_435_455  # the largest length that MQTT has: 4 bytes of 7 bits
_NAMES = {
    Property.PAYLOAD_FORMAT: "PayloadFormatIndicator",
    Property.MESSAGE_EXPIRY: "MessageExpiryInterval",
    Property.CONTENT_TYPE: "ContentType",
    Property.RESPONSE_TOPIC: "ResponseTopic",
    Property.CORRELATION: "CorrelationData",
}
_TEXTS = frozenset((Property.CONTENT_TYPE, Property.RESPONSE_TOPIC))


class Remote(aiomqtt.Client):
    """One connection to the other broker.

    Args:
        settings: The bridge's.
        client_id: There.
        password: None for none.
        on_refused: Called for each message that the other broker refused, with its reason.
        on_dropped: Called for each message at QoS 0 that came and found no room.
    """

    def __init__(
        self,
        settings: BridgeSettings,
        client_id: str,
        password: str | None,
        on_refused: Callable[[str], None],
        on_dropped: Callable[[], None],
    ) -> None:
        host, port = parse_address(settings.address)
        self.is_5 = settings.version == "5"
        will = aiomqtt.Will(settings.status_topic, b"0", 1, retain=True) if settings.status_topic else None
        super().__init__(
            host,
            port,
            identifier=client_id,
            username=settings.username or None,
            password=password,
            protocol=aiomqtt.ProtocolVersion.V5 if self.is_5 else aiomqtt.ProtocolVersion.V311,
            clean_session=None if self.is_5 else not settings.carries_in,
            clean_start=not settings.carries_in if self.is_5 else MQTT_CLEAN_START_FIRST_ONLY,
            keepalive=settings.keep_alive_s,
            max_inflight_messages=settings.inflight_max,
            properties=_connect_properties(settings) if self.is_5 else None,
            tls_context=_tls_context(settings),
            will=will,
            logger=_SILENT,
        )
        self.packet_bytes_max = _PAYLOAD_MAX
        self.qos_max = 2
        self.takes_retained = True
        self.is_resumed = False  # the other broker has kept the session
        self.pending_calls_threshold = settings.inflight_max + SPARE_CALLS
        self._lost = ""  # why the connection is no more
        self._on_refused = on_refused
        self._on_dropped = on_dropped
        self._client.manual_ack_set(on=True)
        if settings.tls is not None and not settings.tls.verify:
            self._client.tls_insecure_set(value=True)

    async def __aenter__(self) -> Self:
        """Connect; where that fails, also to be answered, nothing of the attempt stays open."""
        try:
            await super().__aenter__()
        except BaseException:
            self._client.disconnect()
            raise
        if self._lost:  # since it was let in; aiomqtt takes no note of that
            raise RemoteError(self._lost)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Disconnect. What ended the connection was raised where it was used, and nobody asks for it again."""
        try:
            await super().__aexit__(exc_type, exc, tb)
        finally:
            _ask(self._disconnected)

    def say_bridge(self) -> None:
        """Tell a broker of 3.1.1 that this is a bridge."""
        if not self.is_5:
            self._client.enable_bridge_mode()

    async def listen(self, filters: Iterable[tuple[str, int]]) -> list[str]:
        """Subscribe; return the filters that were refused."""
        refused: list[str] = []
        for name, qos in filters:
            if self.is_5:
                options = SubscribeOptions(qos=qos, noLocal=True, retainAsPublished=True, retainHandling=1)
                answers = await self.subscribe(name, options=options)
            else:
                answers = await self.subscribe(name, qos)
            refused += [name for answer in answers if getattr(answer, "value", answer) >= FAILURE]
        return refused

    async def send(
        self, topic: str, body: bytes, qos: int, items: Iterable[tuple[Property, Value]], *, is_retained: bool
    ) -> bool:
        """Publish a message, and return when it has arrived there; False where it is too large for that broker."""
        properties = _to_paho(items) if self.is_5 else None
        size = _PUBLISH_OVERHEAD + len(topic.encode()) + len(body)
        size += len(properties.pack()) if properties else 0  # type: ignore[no-untyped-call] # paho's
        if size > self.packet_bytes_max:
            return False
        retain = is_retained and self.takes_retained
        await self.publish(topic, body, min(qos, self.qos_max), retain, properties, timeout=float("inf"))
        return True

    def settle(self, message: Message) -> None:
        """Tell the other broker that a message of its is stored here."""
        self._client.ack(message.mid, message.qos)

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None) -> None:  # noqa: ANN401 - as in aiomqtt
        self.is_resumed = flags.session_present
        self.packet_bytes_max = getattr(properties, "MaximumPacketSize", self.packet_bytes_max)
        self.qos_max = getattr(properties, "MaximumQoS", self.qos_max)
        self.takes_retained = bool(getattr(properties, "RetainAvailable", self.takes_retained))
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None) -> None:  # noqa: ANN401 - as in aiomqtt
        if not self._connected.done():
            self._connected.set_exception(RemoteError(f"not let in: {reason_code}"))
        super()._on_disconnect(client, userdata, flags, reason_code, properties)
        self._lost = f"connection lost: {reason_code}"
        _ask(self._disconnected)

    def _on_socket_register_write(self, client: Any, userdata: Any, sock: Any) -> None:  # noqa: ANN401, ARG002 - as in aiomqtt
        if self._connected.done():
            self._watch(sock)
        else:  # paho may be connecting, on a thread
            self._loop.call_soon_threadsafe(self._watch, sock)

    def _watch(self, sock: Any) -> None:  # noqa: ANN401 - paho's
        """Write when the socket takes more; it may be closed since that was asked for."""
        if sock.fileno() >= 0:
            self._loop.add_writer(sock.fileno(), self._write)

    def _write(self) -> None:
        try:
            self._client.loop_write()
        except Exception as error:  # noqa: BLE001 - as in aiomqtt: whatever it is, the connection is over
            if not self._disconnected.done():
                self._disconnected.set_exception(error)

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason_code: Any, properties: Any) -> None:  # noqa: ANN401 - as in aiomqtt
        if self.is_5 and reason_code is not None and reason_code.is_failure:
            self._on_refused(str(reason_code))
        super()._on_publish(client, userdata, mid, reason_code, properties)

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:  # noqa: ANN401 - as in aiomqtt
        if not message.qos and self._queue.qsize() >= UNREAD_MAX:
            self._on_dropped()
        else:
            super()._on_message(client, userdata, message)


def _ask(ended: asyncio.Future[None]) -> None:
    """Take note of why something ended, so that the loop does not say that nobody did."""
    if ended.done() and not ended.cancelled():
        ended.exception()


def own_client_id(settings: BridgeSettings, name: str) -> str:
    """Return what the bridge is called at the other broker."""
    return settings.client_id or f"{socket.gethostname()}.{name}"


def items_of(message: Message) -> list[tuple[Property, Value]]:
    """Return the properties of a message that came, in our own form."""
    found: list[tuple[Property, Value]] = []
    properties = message.properties
    for name, attribute in _NAMES.items():
        value = getattr(properties, attribute, None)
        if value is not None:
            found.append((name, value.encode() if isinstance(value, str) else value))
    pairs = getattr(properties, "UserProperty", ())
    return found + [(Property.USER, (name.encode(), value.encode())) for name, value in pairs]


def outgoing_items(properties: Properties) -> list[tuple[Property, Value]]:
    """Return what of a delivery's properties is the message's."""
    return [(name, value) for name, value in properties.items() if name != Property.SUBSCRIPTION_ID]


async def wait_for_first(tasks: Iterable[asyncio.Future[None]]) -> None:
    """Wait until one of `tasks` is done, end the others, and raise the error of the first."""
    waiting = list(tasks)
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    for task in done:
        task.result()


def _to_paho(items: Iterable[tuple[Property, Value]]) -> PahoProperties:
    properties = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # paho's
    pairs: list[tuple[str, str]] = []
    for name, value in items:
        if isinstance(value, tuple):
            pairs.append((value[0].decode(), value[1].decode()))
        elif name in _NAMES:
            setattr(properties, _NAMES[name], value.decode() if name in _TEXTS and isinstance(value, bytes) else value)
    if pairs:
        properties.UserProperty = pairs
    return properties


def _connect_properties(settings: BridgeSettings) -> PahoProperties:
    properties = PahoProperties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call] # paho's
    properties.ReceiveMaximum = settings.inflight_max
    if settings.carries_in:
        properties.SessionExpiryInterval = NEVER_S
    return properties


def _tls_context(settings: BridgeSettings) -> ssl.SSLContext | None:
    tls = settings.tls
    if tls is None:
        return None
    context = ssl.create_default_context(cafile=tls.ca)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate is not None:
        context.load_cert_chain(tls.certificate, tls.key)
    return context
