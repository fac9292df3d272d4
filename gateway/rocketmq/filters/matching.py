"""What a consumer wants of a topic, and which of the records that were read match that.

Source: docs/protocols/rocketmq.md, "Pulls" and "SQL filters".
"""

from __future__ import annotations

from array import array

from core.message import StoredBatch
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.filters.sql_filter import SQL92, SqlFilter, read_filter
from gateway.rocketmq.filters.sql_tokens import SqlError
from gateway.rocketmq.picked_records import pick_all, pick_tagged
from gateway.rocketmq.tag_filter import TAG, TagFilter, parse_tag_filter
from lmq.remoting.response_codes import ResponseCode

Filter = TagFilter | SqlFilter
"""Tags, a condition on the properties, or None: every message."""

KINDS = (TAG, SQL92)


def parse_filter(kind: str, expression: str) -> Filter:
    """Return the filter of an expression; no kind means tags.

    Raises:
        CommandRefusedError: There is no such kind, or the expression is none of it.
    """
    if kind in {"", TAG}:
        return parse_tag_filter(expression)
    if kind != SQL92:
        remark = f"The broker does not support consumer to filter message by {kind}"
        raise CommandRefusedError(ResponseCode.SYSTEM_ERROR, remark)
    try:
        return read_filter(expression)
    except SqlError as error:
        remark = f"parse the consumer's subscription failed: {error.reason}"
        raise CommandRefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark) from error


def messages_max(wanted: Filter, otherwise: int) -> int:
    """Return how many messages are looked at in one go: `otherwise`, fewer where that would take too long."""
    return min(wanted.messages_max, otherwise) if isinstance(wanted, SqlFilter) else otherwise


def pick_wanted(batch: StoredBatch, wanted: Filter, picked: array[int]) -> int:
    """Put the numbers of the messages that a consumer wants into `picked`; return how many there are.

    At most `messages_max` are to be in the batch: each of them is looked at.
    """
    if wanted is None:
        return pick_all(batch, picked)
    if not isinstance(wanted, SqlFilter):
        return pick_tagged(batch, wanted, picked)
    count = 0
    buf = batch.buf
    for i in range(batch.count):
        if wanted.wants(bytes(buf[batch.properties_start[i] : batch.properties_end[i]])):
            picked[count] = i
            count += 1
    return count
