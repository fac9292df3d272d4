"""Which groups consume which topics by POP, as operators set it; durable. All others pull."""

from __future__ import annotations

import json
from typing import NamedTuple

from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.topic_table import RETRY_PREFIX, TopicRows
from lmq.remoting.response_codes import ResponseCode

MODES_MAX = 100_000  # about 100 bytes each
SHARE_MAX = 65_535  # as many as a topic has queues
POP = "POP"
PULL = "PULL"


class RequestMode(NamedTuple):
    """How a group consumes a topic."""

    mode: str
    share_queues: int = 0  # by POP: how many other members' queues each member takes from too; 0: from all


PULLS = RequestMode(PULL)


class RequestModes:
    """The modes that were set.

    Args:
        rows: Where they are kept.
    """

    def __init__(self, rows: TopicRows) -> None:
        self._rows = rows

    def get(self, topic: str, group: str) -> RequestMode:
        """Return how a group consumes a topic; retry topics are pulled."""
        row = self._rows.get(_key_of(topic, group))
        return PULLS if row is None else RequestMode(*json.loads(row))

    def set(self, topic: str, group: str, mode: RequestMode) -> None:
        """Set how a group consumes a topic.

        Raises:
            CommandRefusedError: The mode is unknown, the topic a retry topic, or too many were set.
        """
        if topic.startswith(RETRY_PREFIX.decode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if mode.mode not in {POP, PULL} or not -1 <= mode.share_queues <= SHARE_MAX:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the mode or popShareQueueNum is impossible")
        key = _key_of(topic, group)
        if mode.mode == PULL:
            self._rows.delete(key)
            return
        if self._rows.get(key) is None and len(self._rows) >= MODES_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"there are {MODES_MAX} request modes already")
        self._rows.put(key, json.dumps(mode).encode())


def _key_of(topic: str, group: str) -> bytes:
    return b"%b\0%b" % (topic.encode(errors="replace"), group.encode(errors="replace"))
