"""The typed header fields of a request, read from its `extFields`."""

from __future__ import annotations

import re

from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.commands import Command
from lmq.remoting.response_codes import ResponseCode

DIGITS_MAX = 20  # of 64 bits, with a sign
SIGNS = ("-", "+")
OFFSET_MAX = (1 << 47) - 1  # what a place holds
GROUP_BYTES_MAX = 255  # clients take no longer name of a group
_GROUP = re.compile(r"[%|a-zA-Z0-9_-]{1,255}")


def text_field(request: Command, name: str) -> str:
    """Return a required field.

    Raises:
        CommandRefusedError: It is absent.
    """
    value = request.ext.get(name)
    if value is None:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the custom field <{name}> is null")
    return value


def integer_field(request: Command, name: str, otherwise: int | None = None) -> int:
    """Return a field as an integer of 64 bits; a required one where there is no `otherwise`.

    Raises:
        CommandRefusedError: It is absent or no integer.
    """
    value = request.ext.get(name)
    if value is None:
        if otherwise is not None:
            return otherwise
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the custom field <{name}> is null")
    is_plain = value.isdigit() or (value[:1] in SIGNS and value[1:].isdigit())  # `int` reads spaces and `1_0` too
    number = int(value) if is_plain and value.isascii() and len(value) <= DIGITS_MAX else None
    if number is None or not -(2**63) <= number < 2**63:
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, f"the custom field <{name}> is not an integer")
    return number


def check_group(name: str) -> None:
    """Refuse a name that no consumer group can have.

    Raises:
        CommandRefusedError: It is empty, has more than 255 characters, or others than RocketMQ's.
    """
    if not _GROUP.fullmatch(name):
        remark = f"subscription group [{name[:GROUP_BYTES_MAX]}] does not exist"
        raise CommandRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)


def flag_field(request: Command, name: str, *, otherwise: bool) -> bool:
    """Return a field that is `true` or `false`."""
    value = request.ext.get(name)
    return otherwise if value is None else value.lower() == "true"
