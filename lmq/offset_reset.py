"""Offsets that a broker tells members of a group to go on at: what `mqadmin resetOffsetByTime` makes it do."""

from __future__ import annotations

import json
import re

from lmq.queues import MessageQueue

# A table with objects for keys, as fastjson writes it, `{{"brokerName":"b",…}:5}`, or a list of objects.
_ENTRY = re.compile(rb"(\{[^{}]*\})(?::(-?\d{1,19}))?")


def read_offsets(body: bytes) -> dict[MessageQueue, int]:
    """Return the offsets by queue; what is no such entry is left out."""
    found: dict[MessageQueue, int] = {}
    for queue, offset in _ENTRY.findall(body):
        try:
            said = json.loads(queue)
            named = MessageQueue(str(said["topic"]), str(said["brokerName"]), int(said["queueId"]))
            found[named] = int(offset or said["offset"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
