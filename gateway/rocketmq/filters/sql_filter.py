"""A subscription's SQL92 filter: read once, bounded in the work that it makes.

Source: docs/protocols/rocketmq.md, "SQL filters".
"""

from __future__ import annotations

from functools import lru_cache

from core.properties import decode_properties
from gateway.rocketmq.filters.sql_program import compile_node, cost_of, meets
from gateway.rocketmq.filters.sql_syntax import parse_sql
from gateway.rocketmq.filters.sql_tokens import SqlError

SQL92 = "SQL92"
KEPT_MAX = 256  # filters that are kept read: consumers say theirs again with each heartbeat
COST_MAX = 20_000  # terms looked at in one go, about 4 ms; a message's properties are as dear as 12
MESSAGE_COST = 12  # of reading a message's properties, in terms


class SqlFilter:
    """What a consumer wants of a topic, by the properties of its messages.

    Args:
        text: The filter.

    Raises:
        SqlError: It is none, or too large.
    """

    __slots__ = ("_program", "messages_max", "text")

    def __init__(self, text: str) -> None:
        node = parse_sql(text)
        self.text = text
        self.messages_max = max(1, COST_MAX // (MESSAGE_COST + cost_of(node)))  # looked at in one go
        self._program = compile_node(node)

    def wants(self, properties: bytes) -> bool:
        """Return whether a message of these encoded properties is wanted."""
        said = decode_properties(properties)
        texts = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in said.items()}
        return meets(self._program, texts)


def read_filter(text: str) -> SqlFilter:
    """Return the filter of a text; the last ones are kept.

    Raises:
        SqlError: It is none, or too large.
    """
    found = _read(text)
    if isinstance(found, SqlError):
        raise SqlError(found.reason)
    return found


@lru_cache(maxsize=KEPT_MAX)
def _read(text: str) -> SqlFilter | SqlError:
    try:
        return SqlFilter(text)
    except SqlError as error:
        return SqlError(error.reason)
