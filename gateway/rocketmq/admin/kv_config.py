"""Values by namespace and key, as name servers keep them for RocketMQ's tools. Durable.

The namespace `ORDER_TOPIC_CONFIG` has what the routes of ordered topics say.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from functools import partial

from core.broker import Broker
from gateway.events import Kind
from gateway.rocketmq.admin.works import AdminPeer, answer_kept, check_size
from gateway.rocketmq.errors import CommandRefusedError
from gateway.rocketmq.fields import text_field
from gateway.rocketmq.topic_table import TopicRows
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

ORDERED_TOPICS = "ORDER_TOPIC_CONFIG"
ENTRIES_MAX = 10_000  # chosen: all are in memory, with VALUE_BYTES_MAX each 650 MB at worst
NAME_BYTES_MAX = 255  # of a namespace, and of a key
VALUE_BYTES_MAX = 65_536  # chosen: tools keep lists of brokers in them


class KvConfig:
    """Answers 100, 101, 102 and 219; a change, when it is written down."""

    def __init__(self, broker: Broker, rows: TopicRows) -> None:
        self._broker = broker
        self._rows = rows

    def find(self, namespace: str, key: str) -> str | None:
        """Return a value, or None."""
        row = self._rows.get(_row_key(namespace, key))
        return None if row is None else row.decode()

    def put(self, request: Command, peer: AdminPeer) -> None:
        """Set a value."""
        key = self._check_right(request, peer)
        value = text_field(request, "value").encode()
        is_new = self._rows.get(key) is None
        if len(value) > VALUE_BYTES_MAX or any(len(part) > NAME_BYTES_MAX for part in key.split(b"\0")):
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the namespace, the key or the value is too long")
        if is_new and len(self._rows) >= ENTRIES_MAX:
            raise CommandRefusedError(ResponseCode.SYSTEM_BUSY, f"there are {ENTRIES_MAX} values already")
        self._broker.check_room()
        self._rows.put(key, value)
        peer.actor().tell(Kind.CHANGED, request=f"updateKvConfig {_told(key)}")
        self._broker.when_kept(partial(answer_kept, request, peer))

    def delete(self, request: Command, peer: AdminPeer) -> None:
        """Forget a value."""
        key = self._check_right(request, peer)
        self._rows.delete(key)
        peer.actor().tell(Kind.CHANGED, request=f"deleteKvConfig {_told(key)}")
        self._broker.when_kept(partial(answer_kept, request, peer))

    def get(self, request: Command) -> Command:
        """Answer with a value."""
        namespace, key = text_field(request, "namespace"), text_field(request, "key")
        value = self.find(namespace, key)
        if value is None:
            remark = f"No config item, Namespace: {namespace} Key: {key}"
            return answer(request, ResponseCode.QUERY_NOT_FOUND, remark)
        return answer(request, ResponseCode.SUCCESS, ext={"value": value})

    def of_namespace(self, request: Command) -> Command:
        """Answer with all values of a namespace."""
        namespace = text_field(request, "namespace")
        start = namespace.encode() + b"\0"
        table = {
            key.removeprefix(start).decode(): row.decode() for key, row in self._rows.items() if key.startswith(start)
        }
        if not table:
            return answer(request, ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}")
        return answer(request, ResponseCode.SUCCESS, body=check_size(encode_json({"table": table})))

    def _check_right(self, request: Command, peer: AdminPeer) -> bytes:
        namespace, key = text_field(request, "namespace"), text_field(request, "key")
        if not namespace or not key or "\0" in namespace + key:
            raise CommandRefusedError(ResponseCode.INVALID_PARAMETER, "the namespace or the key is impossible")
        if not peer.may_configure(key.encode()):
            raise CommandRefusedError(ResponseCode.NO_PERMISSION, f"no permission to set {key}")
        return _row_key(namespace, key)


def _told(key: bytes) -> str:
    return key.replace(b"\0", b" ").decode()


def _row_key(namespace: str, key: str) -> bytes:
    return namespace.encode() + b"\0" + key.encode()
