"""How far all groups are, in one answer: what `mqadmin brokerConsumeStats` shows.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Generator

from core.broker import Broker
from gateway.rocketmq.admin.group_figures import GroupFigures
from gateway.rocketmq.admin.queue_tables import encode_queue, encode_table, topic_of
from gateway.rocketmq.admin.works import BODY_BYTES_MAX, AdminPeer, Steps, check_size, stepwise
from gateway.rocketmq.fields import flag_field
from gateway.rocketmq.topic_table import TopicTable
from lmq.remoting.commands import Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode


class AllProgress:
    """Answers 317."""

    def __init__(self, broker: Broker, topics: TopicTable, groups: GroupFigures, broker_name: str) -> None:
        self._broker = broker
        self._topics = topics
        self._groups = groups
        self._broker_name = broker_name

    def tell(self, request: Command, peer: AdminPeer, address: str) -> Steps:
        """Answer with how far each group is on each queue of the topics that it left offsets on."""
        is_ordered = flag_field(request, "isOrder", otherwise=False)
        left = yield from self._find_groups()
        pieces: list[bytes] = []
        size = behind = 0
        for group in sorted(left):
            tables: list[bytes] = []
            for name in sorted(left[group]):
                topic = self._topics.find(name.encode())
                if topic is None or is_ordered > topic.is_order or not peer.may_read(name.encode()):
                    continue
                rows: list[tuple[bytes, object]] = []
                for queue_id, is_end in stepwise(range(topic.write_queues)):
                    figures = yield from self._groups.progress_on(group, name, queue_id)
                    rows.append((encode_queue(self._broker_name, name, queue_id), figures))
                    behind += figures["brokerOffset"] - figures["consumerOffset"]
                    if is_end:
                        yield
                tables.append(encode_table("offsetTable", rows, {"consumeTps": 0.0}))
            pieces.append(b"{%b:[%b]}" % (encode_json(group), b",".join(tables)))
            size += len(pieces[-1])
            if size > BODY_BYTES_MAX:
                break
            yield
        rest = encode_json({"brokerAddr": address, "totalDiff": behind, "totalInflightDiff": 0})
        body = b'{"consumeStatsList":[%b],%b' % (b",".join(pieces), rest[1:])
        return answer(request, ResponseCode.SUCCESS, body=check_size(body))

    def _find_groups(self) -> Generator[None, None, dict[str, set[str]]]:
        """Return the topics on which each group left offsets."""
        found: dict[str, set[str]] = {}
        for (group, key, _), is_end in stepwise(self._broker.consumer_offsets.items()):
            topic = topic_of(key)[0].decode(errors="replace")
            found.setdefault(group.decode(errors="replace"), set()).add(topic)
            if is_end:
                yield
        return found
