"""What both sides say of themselves when a connection is opened: capabilities, credentials, limits."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from pamqp import common
from pamqp.commands import Connection as Method

from gateway.amqp.errors import AmqpError, syntax_error
from gateway.amqp.field_table import Field, check_table, has_many, read_table
from gateway.amqp.methods import arguments_of
from gateway.amqp.reply_codes import ReplyCode
from gateway.net.streams.first_bytes import told_of

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
HEADER_OF_0_9 = b"AMQP\x01\x01\x00\x09"  # some clients of 0-9-1, such as aioamqp, say this; RabbitMQ lets them in
FRAME_MAX_LEAST = 4_096  # the protocol's own
TEXTS = ("longstr", "binary")
EXTERNAL = "EXTERNAL"  # the client's certificate names its user
PLAIN, AMQPLAIN = "PLAIN", "AMQPLAIN"
CAPABILITIES: common.FieldTable = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}
INCOMPLETE_BYTES_LEAST = 64 * 1_048_576  # four messages of 16 MiB, the default bound, also where it is set lower
INCOMPLETE_MESSAGES = 4  # of the largest that may come in pieces on several channels of a connection at once


class ConnectionLimits:
    """What one side offers in connection.tune, and how much it takes; the settings' numbers, handed down."""

    __slots__ = (
        "body_bytes_max",
        "channel_max",
        "frame_max",
        "handshake_ms",
        "heartbeat_s",
        "incomplete_bytes_max",
        "mechanisms",
        "product",
    )

    def __init__(
        self,
        *,
        frame_max: int,
        channel_max: int,
        heartbeat_s: int,
        body_bytes_max: int,
        handshake_ms: int,
        product: str,
        mechanisms: tuple[str, ...] = (PLAIN, AMQPLAIN),
    ) -> None:
        self.frame_max = frame_max
        self.channel_max = channel_max
        self.heartbeat_s = heartbeat_s
        self.body_bytes_max = body_bytes_max
        self.handshake_ms = handshake_ms
        self.product = product
        self.mechanisms = mechanisms  # by which the client may prove its name
        self.incomplete_bytes_max = max(INCOMPLETE_MESSAGES * body_bytes_max, INCOMPLETE_BYTES_LEAST)


def not_amqp(data: bytes) -> str:
    """Return why a connection ends that does not begin with our protocol header, for the log."""
    told = told_of(data)
    return f"not AMQP 0-9-1{', but another version of it' if told == ', but AMQP' else told}"


def start_method(limits: ConnectionLimits, version: str) -> Method.Start:
    """Return what the server says first."""
    properties: common.FieldTable = {
        "product": limits.product,
        "version": version,
        "platform": "Python",
        "information": "AMQP 0-9-1 with RabbitMQ's extensions",
        "capabilities": CAPABILITIES,
    }
    return Method.Start(0, 9, properties, " ".join(limits.mechanisms), "en_US")


class Login:
    """The client's answer: the name it gives itself, and what it can do.

    Raises:
        AmqpError: COMMAND_INVALID: an unknown mechanism; SYNTAX_ERROR: a response that is none.
    """

    __slots__ = ("capabilities", "client", "password", "user")

    def __init__(self, method: Method.StartOk, mechanisms: Collection[str] = (PLAIN, AMQPLAIN)) -> None:
        properties = arguments_of(method.client_properties)
        self.capabilities = _read_capabilities(properties.get("capabilities"))
        response = bytes_of(method.response)
        if method.mechanism not in mechanisms:
            reason = f"unknown authentication mechanism '{method.mechanism}'"
            raise AmqpError(ReplyCode.COMMAND_INVALID, reason, method.index)
        if method.mechanism == PLAIN:
            self.user, self.password = _parse_plain(response)
        elif method.mechanism == AMQPLAIN:
            self.user, self.password = _parse_amqplain(response)
        else:
            self.user, self.password = "", b"" if method.mechanism == EXTERNAL else response
        name = properties.get("connection_name")
        self.client = (name.text or "") if name is not None else ""


def bytes_of(given: object) -> bytes:
    """Return a long string as it came: pamqp gives text where it is UTF-8."""
    return given if isinstance(given, bytes) else str(given).encode()


def login_refused(mechanism: str, *, is_busy: bool, why: str = "") -> AmqpError:
    """Return the error for a refused client, with the reason `why` where it may know that; `is_busy`: come again."""
    if why:
        return AmqpError(ReplyCode.ACCESS_REFUSED, why)
    if is_busy:
        return AmqpError(ReplyCode.CONNECTION_FORCED, "too many logins wait, try again later")
    reason = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
    return AmqpError(ReplyCode.ACCESS_REFUSED, reason)


def agreed_frame_max(method: Method.TuneOk, limits: ConnectionLimits) -> int:
    """Return the largest frame that both sides take.

    Raises:
        AmqpError: NOT_ALLOWED: the client wants more than it was offered, or less than the protocol has.
    """
    frame_max = method.frame_max or limits.frame_max
    if not FRAME_MAX_LEAST <= frame_max <= limits.frame_max:
        is_high = frame_max > limits.frame_max
        bound, allowed = ("higher", "maximum"), limits.frame_max
        if not is_high:
            bound, allowed = ("lower", "minimum"), FRAME_MAX_LEAST
        reason = f"negotiated frame_max = {frame_max} is {bound[0]} than the {bound[1]} allowed value ({allowed})"
        raise AmqpError(ReplyCode.NOT_ALLOWED, reason, Method.Tune.index)
    if method.channel_max > limits.channel_max:
        reason = f"negotiated channel_max = {method.channel_max} is higher than the maximum allowed value"
        raise AmqpError(ReplyCode.NOT_ALLOWED, f"{reason} ({limits.channel_max})", Method.Tune.index)
    return frame_max


def _parse_plain(response: bytes) -> tuple[str, bytes]:
    _, separator, rest = response.partition(b"\x00")
    user, second, password = rest.partition(b"\x00")
    if not separator or not second:
        raise syntax_error("malformed PLAIN response", Method.StartOk.index)
    return user.decode(errors="replace"), password


def _parse_amqplain(response: bytes) -> tuple[str, bytes]:
    table = len(response).to_bytes(4, "big") + response
    end = check_table(table, 0, len(table))
    found = read_table(table, 4, end) if end > 0 and not has_many(table, 4, end) else {}
    user, password = found.get("LOGIN"), found.get("PASSWORD")
    if user is None or password is None or user.text is None or password.kind not in TEXTS:
        raise syntax_error("malformed AMQPLAIN response", Method.StartOk.index)
    return user.text, cast("bytes", password.value)


def _read_capabilities(given: Field | None) -> frozenset[str]:
    """Return the names of the client's capabilities that are known here; none where the table has too many fields."""
    if given is None or given.kind != "table":
        return frozenset()
    table = cast("bytes", given.value)
    if has_many(table, 0, len(table)):
        return frozenset()
    said = read_table(table, 0, len(table))
    return frozenset(name for name in CAPABILITIES if name in said and said[name].value is True)
