"""What RocketMQ's tools say of users and access lists, as the admin API's schemas are: checked by pydantic.

Source: docs/protocols/rocketmq.md, "Users and access lists".
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from gateway.plain_errors import tell_wrong
from gateway.rocketmq.errors import CommandRefusedError
from lmq.remoting.response_codes import ResponseCode

ENTRIES_MAX = 1_000  # of one list; chosen: all of it is one request, and one transaction
REMARK_CHARS_MAX = 1_000  # chosen: a remark is a line that somebody reads
M = TypeVar("M", bound=BaseModel)


class UserInfo(BaseModel):
    """What a tool says of a user; what it does not say stays."""

    password: str | None = None
    userType: Literal["Super", "Normal"] | None = None  # noqa: N815 - RocketMQ's names
    userStatus: Literal["enable", "disable"] | None = None  # noqa: N815


Action = Literal["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]


class Entry(BaseModel):
    """What is allowed or denied."""

    resource: Annotated[str, Field(pattern=r"^(\*|(Topic|Group|Cluster):.+)$", max_length=255)]
    actions: Annotated[
        list[Literal["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]],
        Field(min_length=1, max_length=8),
    ]
    sourceIps: Annotated[list[str], Field(max_length=1_000)] | None = None  # noqa: N815 - RocketMQ's names
    decision: Literal["Allow", "Deny"]


class PolicyInfo(BaseModel):
    """Entries of one kind."""

    policyType: Literal["Custom", "Default"] = "Custom"  # noqa: N815
    entries: Annotated[list[Entry], Field(max_length=ENTRIES_MAX)] = []


class AclInfo(BaseModel):
    """A list."""

    policies: Annotated[list[PolicyInfo], Field(min_length=1, max_length=16)]


def parse(schema: type[M], said: bytes | dict[str, object], what: str = "") -> M:
    """Return what was said.

    Args:
        schema: What it is to be.
        said: JSON, or its values.
        what: What it is about, for the remark.

    Raises:
        CommandRefusedError: It is something else.
    """
    try:
        return schema.model_validate_json(said) if isinstance(said, bytes) else schema.model_validate(said)
    except ValidationError as error:
        first = tell_wrong(error.errors())[0]
        where = what or ".".join(str(part) for part in first.place) or "the body"
        raise CommandRefusedError(
            ResponseCode.INVALID_PARAMETER, f"{where}: {first.text}"[:REMARK_CHARS_MAX]
        ) from error
