"""The broker in figures, as `mqadmin brokerStatus` and `clusterList` show it.

Source: docs/protocols/rocketmq.md, "Tools".
"""

from __future__ import annotations

from collections.abc import Generator

from core.broker import Broker
from core.message import StoredBatch
from gateway.rocketmq.admin.rates import Rates
from gateway.rocketmq.admin.works import Steps, read_store_ms
from gateway.rocketmq.opened import opened
from gateway.rocketmq.topic_table import TopicTable, queue_key
from lmq.remoting.commands import VERSION, Command, answer, encode_json
from lmq.remoting.response_codes import ResponseCode

VERSION_NAME = "V5_4_0"  # of VERSION
QUEUES_LOOKED_AT = 256  # for the oldest message
SECOND_MS = 1_000
MIB = 1 << 20
DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60


class BrokerFigures:
    """Answers GET_BROKER_RUNTIME_INFO."""

    def __init__(self, broker: Broker, topics: TopicTable) -> None:
        self._broker = broker
        self._topics = topics
        self._rates = Rates()
        self._one = StoredBatch(1)
        self._started_ms = 0  # as far as was seen

    def note(self, now_ms: int) -> None:
        """Take note of the counters, for the rates."""
        self._started_ms = self._started_ms or now_ms
        self._rates.note(*self._counts(), now_ms)

    def _counts(self) -> tuple[int, int]:
        went = sum(door.messages_out for door in self._broker.metrics.doors.values())
        return self._broker.figures().messages_stored, went

    def runtime(self, request: Command, now_ms: int) -> Steps:
        """Answer with all figures."""
        self._started_ms = self._started_ms or now_ms
        came, went = self._counts()
        oldest_ms = yield from self._find_oldest()
        figures = self._broker.figures()
        free = self._broker.room.free_bytes
        total = figures.log_bytes + free
        size = sum(door.bytes_in for door in self._broker.metrics.doors.values())
        end = self._broker.end_place
        zero = "0"
        table = {
            "bootTimestamp": str(self._started_ms),
            "brokerActive": "true",
            "brokerVersion": str(VERSION),
            "brokerVersionDesc": VERSION_NAME,
            "commitLogDirCapacity": f"Total : {total // MIB} MiB, Free : {free // MIB} MiB.",
            "commitLogDiskRatio": f"{figures.log_bytes / total if total else 0.0:.4f}",
            "commitLogMaxOffset": str(end),
            "commitLogMinOffset": str(max(end - figures.log_bytes, 0)),
            "dispatchBehindBytes": zero,
            "earliestMessageTimeStamp": str(oldest_ms or now_ms),
            "getMessageEntireTimeMax": zero,
            "getTotalTps": self._rates.went(went, now_ms),
            "getTransferredTps": self._rates.went(went, now_ms),
            "lmqDispatches": str(figures.dispatches),
            "lmqQueues": str(figures.queues),
            "msgGetTotalTodayMorning": zero,
            "msgGetTotalTodayNow": str(went),
            "msgGetTotalYesterdayMorning": zero,
            "msgPutTotalTodayMorning": zero,
            "msgPutTotalTodayNow": str(came),
            "msgPutTotalYesterdayMorning": zero,
            "pageCacheLockTimeMills": zero,
            "pullThreadPoolQueueCapacity": zero,
            "pullThreadPoolQueueHeadWaitTimeMills": zero,
            "pullThreadPoolQueueSize": zero,
            "putMessageAverageSize": f"{size / came if came else 0.0:.1f}",
            "putMessageSizeTotal": str(size),
            "putMessageTimesTotal": str(came),
            "putTps": self._rates.came(came, now_ms),
            "remainHowManyDataToFlush": "0 B",
            "runtime": _span_of((now_ms - self._started_ms) // SECOND_MS),
            "sendThreadPoolQueueCapacity": zero,
            "sendThreadPoolQueueHeadWaitTimeMills": zero,
            "sendThreadPoolQueueSize": zero,
            "timerCongestNum": zero,
            "timerDequeueTps": "0.0",
            "timerEnqueueTps": "0.0",
            "timerOffsetBehind": zero,
            "timerReadBehind": zero,
        }
        return answer(request, ResponseCode.SUCCESS, body=encode_json({"table": table}))

    def replication(self, request: Command) -> Command:
        """Answer with the replicas of the log: none, this is the only broker of its name."""
        nobody = {
            "activated": False,
            "lastReadTimestamp": 0,
            "lastWriteTimestamp": 0,
            "masterAddr": "",
            "masterFlushOffset": 0,
            "maxOffset": 0,
            "transferredByteInSecond": 0,
        }
        said = {
            "haClientRuntimeInfo": nobody,
            "haConnectionInfo": [],
            "inSyncSlaveNums": 0,
            "master": True,
            "masterCommitLogMaxOffset": self._broker.end_place,
        }
        return answer(request, ResponseCode.SUCCESS, body=encode_json(said))

    def _find_oldest(self) -> Generator[None, None, int]:
        """Return when the oldest message was stored that some queues have, 0 where they have none."""
        keys = [queue_key(self._broker.parent_topic, 0)]
        for name in self._topics.names()[:QUEUES_LOOKED_AT]:
            topic = self._topics.find(name)
            keys += [queue_key(name, number) for number in range(topic.write_queues if topic else 0)]
        oldest_ms = 0
        for key in keys[:QUEUES_LOOKED_AT]:
            ref = self._broker.find_queue(key)
            if ref < 0 or not (yield from opened(self._broker, ref)):
                continue
            if self._broker.min_offset(ref) < self._broker.max_offset(ref):
                stored_ms = yield from read_store_ms(self._broker, self._one, ref, self._broker.min_offset(ref))
                if stored_ms:
                    oldest_ms = min(oldest_ms or stored_ms, stored_ms)
                yield
        return oldest_ms


def _span_of(seconds: int) -> str:
    days, rest = divmod(seconds, DAY_S)
    hours, rest = divmod(rest, HOUR_S)
    return f"[ {days} days, {hours} hours, {rest // MINUTE_S} minutes, {rest % MINUTE_S} seconds ]"
