"""The properties of a message, between AMQP and JSON, with RabbitMQ's names."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Mapping
from typing import Any

from pamqp.commands import Basic

from gateway.admin.management.failures import bad_request

NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
NUMBERS = ("delivery_mode", "priority", "timestamp")
_NUMBER_MAX = {"delivery_mode": 255, "priority": 255, "timestamp": 253_402_300_799}


def read_properties(told: Mapping[str, Any]) -> Basic.Properties:
    """Return the properties that JSON tells.

    Raises:
        HTTPException: 400: There is no such property, or it is of another type.
    """
    properties = Basic.Properties()
    for name, value in told.items():
        if name not in NAMES:
            raise bad_request(f"unknown property {name}")
        if value is None:
            continue
        setattr(properties, "message_type" if name == "type" else name, _read(name, value))
    return properties


def _read(name: str, value: object) -> object:
    if name == "headers":
        if not isinstance(value, dict):
            raise bad_request("headers must be an object")
        return value
    if name in NUMBERS:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _NUMBER_MAX[name]:
            raise bad_request(f"{name} must be a number, {_NUMBER_MAX[name]} at most")
        return dt.datetime.fromtimestamp(value, dt.UTC) if name == "timestamp" else value
    if not isinstance(value, str) or len(value.encode()) > 255:  # noqa: PLR2004 - a short string
        raise bad_request(f"{name} must be a text of 255 bytes at most")
    return value


def tell_properties(properties: Basic.Properties) -> dict[str, object]:
    """Return those properties that a message has, as JSON has them."""
    told: dict[str, object] = {}
    for name in NAMES:
        value = getattr(properties, "message_type" if name == "type" else name)
        if value is not None and value not in ("", {}):
            told[name] = _tell(value)
    return told


def _tell(value: object) -> object:
    if isinstance(value, dict):
        return {name: _tell(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_tell(inner) for inner in value]
    if isinstance(value, dt.datetime):
        return int(value.timestamp())
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return float(value) if isinstance(value, decimal.Decimal) else value
