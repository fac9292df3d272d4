"""The native SDK: produce to and pull from the gateway, or a RocketMQ broker, over the remoting protocol.

```python
async with Producer("127.0.0.1:9876") as producer, PullConsumer("127.0.0.1:9876") as consumer:
    await producer.publish("site/1/temp", b"21.5")
    async for message in consumer.messages(mqtt_queue("site/+/temp"), from_="first"):
        print(message.mqtt_topic, message.body)
```
"""

from __future__ import annotations

from gateway.sdk.errors import (
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
from gateway.sdk.message import Message, PullResult, SendResult
from gateway.sdk.producer import OutMessage, Producer
from gateway.sdk.pull_consumer import PullConsumer
from gateway.sdk.queues import amqp_queue, mqtt_queue

__all__ = [
    "BusyError",
    "ClosedError",
    "ConnectFailedError",
    "ConnectionLostError",
    "Message",
    "MessageRefusedError",
    "NoPermissionError",
    "NotFoundError",
    "OutMessage",
    "Producer",
    "PullConsumer",
    "PullResult",
    "RequestTimeoutError",
    "ResponseError",
    "SdkError",
    "SendResult",
    "UnsupportedError",
    "amqp_queue",
    "mqtt_queue",
]
