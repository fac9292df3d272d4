"""A link to an MQTT door, through aiomqtt."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator
from typing import Any, Self

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.commands.doors.place import Place
from gateway.commands.doors.security import make_context, tls_hint
from gateway.commands.doors.traffic import AckMode, Incoming, LinkError, Outgoing, Start, StartKind, Wanted
from gateway.commands.refusing import EXIT_DENIED, EXIT_NOT_NOW, EXIT_UNREACHABLE, EXIT_WRONG_USE

TIMEOUT_S = 10.0  # chosen: somebody waits at a terminal
INFLIGHT = 200  # chosen: enough on the way that acknowledgements are not waited for one by one
FAILURE = 0x80
NOBODY = 0x10  # no subscription fits the topic
UNKNOWN_ID = 0x92
DENIED = frozenset({0x86, 0x87, 0x8C})
WRONG = frozenset({0x8F, 0x90, 0x99, 0x9A, 0x9B, 0x9E, 0xA1, 0xA2})
TIMED_OUT = "Operation timed out"  # as aiomqtt says it
HUNG_UP = "it hangs up and says nothing of MQTT"
SILENT = logging.getLogger("lmq.silent")
SILENT.disabled = True
_NAMES = {
    "PayloadFormatIndicator": "payload_format",
    "MessageExpiryInterval": "message_expiry",
    "ContentType": "content_type",
    "ResponseTopic": "response_topic",
    "CorrelationData": "correlation_data",
    "SubscriptionIdentifier": "subscription_identifier",
}


class MqttLink(aiomqtt.Client):
    """A client of MQTT 5."""

    def __init__(self, place: Place) -> None:
        super().__init__(
            place.host,
            place.port,
            username=place.user,
            password=place.password,
            identifier=place.client,
            protocol=aiomqtt.ProtocolVersion.V5,
            timeout=TIMEOUT_S,
            tls_context=make_context(place.tls),
            max_inflight_messages=INFLIGHT,
            logger=SILENT,
        )
        self.pending_calls_threshold = 1 << 20
        self._place = place
        self._answers: dict[int, asyncio.Future[tuple[int, str]]] = {}
        self.subscribed: list[str] = []  # filters that the door has taken
        self._client.manual_ack_set(on=True)
        if place.tls is not None and place.tls.insecure:
            self._client.tls_insecure_set(value=True)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            LinkError: That does not work.
        """
        try:
            return await super().__aenter__()
        except aiomqtt.MqttError as error:
            self._client.disconnect()
            reason = getattr(error, "rc", None)
            value = getattr(reason, "value", None)
            if value is None:
                told = f"cannot connect to mqtt {self._place.address}: {error.__cause__ or self._explain(error)}"
                raise LinkError(told, EXIT_UNREACHABLE) from error
            raise LinkError(f"mqtt {self._place.address} refuses the login: {reason}", _code_of(value)) from error

    def _explain(self, error: aiomqtt.MqttError) -> str:
        """Return why it did not connect, where the server took the connection and then said nothing of MQTT."""
        if str(error) == HUNG_UP:
            return HUNG_UP + tls_hint(self._place)
        if str(error) == TIMED_OUT:
            return f"no answer of MQTT in {TIMEOUT_S:.0f} s{tls_hint(self._place)}"
        return str(error)

    async def __aexit__(self, *exc_info: object) -> None:
        """Disconnect, also where the connection is lost."""
        try:
            await super().__aexit__(None, None, None)
        except aiomqtt.MqttError:
            return

    async def publish(self, message: Outgoing) -> bool | None:  # type: ignore[override] # ours has one argument
        """Publish a message. A refusal comes with its reason; MQTT 5 tells where no queue gets the message."""
        delay = message.delay_s
        topic = message.target if delay is None else f"$delayed/{math.ceil(delay)}/{message.target}"
        try:
            told = self._client.publish(topic, message.body, message.qos, message.retain, _properties_of(message))
        except ValueError as error:
            raise LinkError(f"mqtt: {error}", EXIT_WRONG_USE) from error
        if told.rc:
            raise LinkError(f"the connection to mqtt {self._place.address} is lost", EXIT_UNREACHABLE)
        if not message.qos:
            return None
        answer = self._answers[told.mid] = asyncio.get_running_loop().create_future()
        await asyncio.wait((answer, self._disconnected), timeout=TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            why = "the connection was lost" if self._disconnected.done() else f"no answer in {TIMEOUT_S:.0f} s"
            raise LinkError(f"mqtt {self._place.address}: {why}", EXIT_UNREACHABLE)
        value, reason = self._answers.pop(told.mid).result()
        if value == UNKNOWN_ID and message.qos > 1:  # the library passes over the reason in the first answer
            raise LinkError("mqtt refuses the message; try --qos 1 to see the reason")
        if value >= FAILURE:
            raise LinkError(f"mqtt refuses the message: {reason}", _code_of(value))
        return None if message.retain or delay is not None else value != NOBODY

    async def listen(self, wanted: Wanted) -> AsyncGenerator[Incoming]:
        """Yield what comes of filters; with `shares` of `$share/GROUP/FILTER`, from a start on of `$replay`."""
        qos = 0 if wanted.ackmode is AckMode.NONE else wanted.qos
        for name in wanted.names:
            asked = _filter_of(name, wanted)
            try:
                answers = await self.subscribe(asked, qos)
            except (aiomqtt.MqttError, ValueError) as error:
                raise LinkError(f"mqtt refuses the filter {name!r}: {error}", EXIT_WRONG_USE) from error
            value = getattr(answers[0], "value", FAILURE)
            if value >= FAILURE:
                raise LinkError(f"mqtt refuses the filter {name!r}: {answers[0]}", _code_of(value))
            self.subscribed.append(asked)
        try:
            async for message in self.messages:
                came = _incoming(message)
                yield came
                if not wanted.shares:
                    await self.settle(came, AckMode.ACK)
        except aiomqtt.MqttError as error:
            raise LinkError(f"the connection to mqtt {self._place.address} is lost", EXIT_UNREACHABLE) from error

    async def settle(self, message: Incoming, ackmode: AckMode) -> None:
        """Acknowledge a message; one that is to be given back is given to another when this client leaves."""
        if ackmode is AckMode.REJECT:
            raise LinkError("--ackmode reject: MQTT has no way to reject a message; it can be given back (requeue)")
        if ackmode is AckMode.ACK and message.handle.qos:
            self._client.ack(message.handle.mid, message.handle.qos)

    def _on_disconnect(self, *told: Any) -> None:  # noqa: ANN401 - as in aiomqtt
        """Have an end before the login was answered seen at once: the library waits for that answer all the same."""
        super()._on_disconnect(*told)
        if not self._connected.done():
            self._loop.call_soon_threadsafe(_give_up, self._connected)

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason_code: Any, properties: Any) -> None:  # noqa: ANN401 - as in aiomqtt
        answer = self._answers.get(mid)
        if answer is not None and not answer.done():
            answer.set_result((getattr(reason_code, "value", 0), str(reason_code)))
        super()._on_publish(client, userdata, mid, reason_code, properties)


def _give_up(connected: asyncio.Future[None]) -> None:
    if not connected.done():
        connected.set_exception(aiomqtt.MqttError(HUNG_UP))
        connected.exception()  # is seen, though nobody may wait any more


def _filter_of(name: str, wanted: Wanted) -> str:
    if wanted.shares:
        if wanted.start is not None:
            raise LinkError("--from: an MQTT group begins now; `lmq subscribe --from` reads old messages", 2)
        return name if name.startswith(("$share/", "$queue/")) else f"$share/{wanted.group}/{name}"
    return name if wanted.start is None else f"$replay/{_start_of(wanted.start)}/{name}"


def _start_of(start: Start) -> str:
    from datetime import UTC, datetime

    if start.kind is StartKind.OFFSET:
        return str(start.number)
    if start.kind is StartKind.MOMENT:
        return datetime.fromtimestamp(start.number / 1_000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    if start.word != "first":
        raise LinkError(f"--from {start.word}: MQTT accepts first, an offset, or a time", EXIT_WRONG_USE)
    return "0"


def _properties_of(message: Outgoing) -> Properties | None:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call] # paho's
    if message.headers:
        properties.UserProperty = list(message.headers.items())
    if message.content_type:
        properties.ContentType = message.content_type
    if message.expires_s is not None:
        properties.MessageExpiryInterval = math.ceil(message.expires_s)
    return properties


def _incoming(message: aiomqtt.Message) -> Incoming:
    found = message.properties
    properties: dict[str, Any] = {"qos": message.qos, "retain": message.retain}
    for attribute, name in _NAMES.items():
        value = getattr(found, attribute, None)
        if value is not None:
            properties[name] = value.hex() if isinstance(value, bytes) else value
    return Incoming(
        str(message.topic), bytes(message.payload), message, dict(getattr(found, "UserProperty", ())), properties
    )


def _code_of(value: int) -> int:
    return EXIT_DENIED if value in DENIED else EXIT_WRONG_USE if value in WRONG else EXIT_NOT_NOW
