"""The asyncio SDK: produce to and pull from the gateway, or a RocketMQ broker, over the remoting protocol.

```python
import asyncio
from lmq import Producer, PullConsumer

async def main():
    async with Producer("127.0.0.1:9876") as producer, PullConsumer("127.0.0.1:9876") as consumer:
        await producer.send("Orders", b"first", tags="new")
        async for message in consumer.messages("Orders", from_="first"):  # for ever: Ctrl-C ends it
            print(message.queue_offset, message.tags, message.body)

asyncio.run(main())
```

`Producer.publish` sends to MQTT and AMQP subscribers; `mqtt_queue` and `amqp_queue` name the
light queues that are kept for them, from the first subscription or queue on.

`lmq.testing` has a broker for tests. Nothing in this package imports the server's packages (`core`, `gateway`), so it
works in a project that has packages of those names.
"""

from __future__ import annotations

from lmq.allocation import (
    Allocate,
    allocate_averagely,
    allocate_by_circle,
    allocate_by_config,
    allocate_by_consistent_hash,
    allocate_by_machine_room,
    allocate_near_machine_room,
)
from lmq.consumption import ConsumeContext, ConsumeStatus, Listener
from lmq.errors import (
    BusyError,
    ClosedError,
    ConnectFailedError,
    ConnectionLostError,
    MessageRefusedError,
    NoPermissionError,
    NotFoundError,
    RequestTimeoutError,
    ResponseError,
    SdkError,
    UnsupportedError,
)
from lmq.message import Message, PullResult, SendResult
from lmq.out_message import OutMessage
from lmq.process_queue import FlowLimits
from lmq.producer import Producer
from lmq.pull_consumer import PullConsumer
from lmq.push_consumer import PushConsumer
from lmq.queue_choice import QueueSelector, select_by_hash
from lmq.queues import MessageQueue, amqp_queue, mqtt_queue
from lmq.simple_consumer import SimpleConsumer
from lmq.transaction_producer import TransactionProducer, TransactionResult, TransactionState

__all__ = [
    "Allocate",
    "BusyError",
    "ClosedError",
    "ConnectFailedError",
    "ConnectionLostError",
    "ConsumeContext",
    "ConsumeStatus",
    "FlowLimits",
    "Listener",
    "Message",
    "MessageQueue",
    "MessageRefusedError",
    "NoPermissionError",
    "NotFoundError",
    "OutMessage",
    "Producer",
    "PullConsumer",
    "PullResult",
    "PushConsumer",
    "QueueSelector",
    "RequestTimeoutError",
    "ResponseError",
    "SdkError",
    "SendResult",
    "SimpleConsumer",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "UnsupportedError",
    "allocate_averagely",
    "allocate_by_circle",
    "allocate_by_config",
    "allocate_by_consistent_hash",
    "allocate_by_machine_room",
    "allocate_near_machine_room",
    "amqp_queue",
    "mqtt_queue",
    "select_by_hash",
]
