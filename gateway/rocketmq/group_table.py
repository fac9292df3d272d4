"""Consumer groups as operators set them: whether they may consume, and how their retries go. Durable.

A group that was never set up has the same settings as one that was made with the defaults of RocketMQ's tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from core.row_format import RowFormat
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.topic_table import TopicRows
from lmq.remoting.response_codes import ResponseCode

GROUPS_MAX = 100_000  # that operators make, about 300 bytes each
RETRY_QUEUES_MAX = 1_024  # chosen: official brokers make one by default
ROWS = RowFormat(2)  # rows of the version before say nothing of consumeMessageOrderly: it is not set
ATTEMPTS_MAX = 2**31 - 1  # Java's int


@dataclass(frozen=True)
class Group:
    """The settings of one group, by the names that they have in RocketMQ's bodies."""

    consumeEnable: bool = True  # noqa: N815
    consumeBroadcastEnable: bool = True  # noqa: N815
    notifyConsumerIdsChangedEnable: bool = True  # noqa: N815
    retryQueueNums: int = 1  # noqa: N815 - 0: messages that are sent back are dropped
    retryMaxTimes: int = 16  # noqa: N815 - then a message goes to the dead letters
    consumeMessageOrderly: bool = False  # noqa: N815 - said to those that ask; members say it of each POP themselves

    def as_body(self, name: str) -> dict[str, Any]:
        """Return the settings as RocketMQ's tools read them."""
        return {"groupName": name, **asdict(self)}


DEFAULT = Group()


class GroupTable:
    """All groups.

    Args:
        rows: Where they are kept.
    """

    def __init__(self, rows: TopicRows) -> None:
        self._rows = rows
        self._known: dict[bytes, Group] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nobody set a group up."""
        return len(self._rows) == 0

    def get(self, name: bytes) -> Group:
        """Return the settings of a group, the default ones where nobody set any."""
        group = self._known.get(name)
        if group is None:
            row = self._rows.get(name)
            if row is None:
                return DEFAULT
            group = self._known[name] = Group(**json.loads(row))
        return group

    def set(self, name: bytes, group: Group) -> None:
        """Set a group up.

        Raises:
            CommandRefusedError: A number is out of its range, or there are too many groups.
        """
        if not 0 <= group.retryQueueNums <= RETRY_QUEUES_MAX or not -1 <= group.retryMaxTimes <= ATTEMPTS_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "retryQueueNums or retryMaxTimes is impossible")
        if self._rows.get(name) is None and len(self._rows) >= GROUPS_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"there are {GROUPS_MAX} groups already")
        self._known[name] = group
        self._rows.put(name, json.dumps(asdict(group)).encode())

    def delete(self, name: bytes) -> None:
        """Forget what was set; the group has the defaults again."""
        self._known.pop(name, None)
        self._rows.delete(name)

    def items(self) -> Iterator[tuple[bytes, Group]]:
        """Give the groups that were set up."""
        for name in [name for name, _row in self._rows.items()]:  # noqa: PERF102 - a table has no `keys`
            yield name, self.get(name)
