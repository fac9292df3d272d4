"""What becomes of a message that failed: it comes again after a while, and at last goes to the dead letters."""

from __future__ import annotations

import dataclasses
import logging
import time

from lmq.errors import SdkError
from lmq.message import Message
from lmq.remoting.commands import Command
from lmq.remoting.message_codec import encode_properties_text
from lmq.remoting.request_codes import RequestCode
from lmq.remoting.response_codes import SEND_STORED_CODES, ResponseCode
from lmq.routes import TEMPLATE_TOPIC, Routes

LOGGER = logging.getLogger(__name__)

RETRY_PREFIX = "%RETRY%"
RETRIES_USUAL = 16  # of a group that says nothing else
FIRST_LEVEL = 3  # the delay of the first attempt, 10 s; each further one a level more
NOT_SENT_BACK = frozenset(
    ("WAIT", "DELAY", "REAL_TOPIC", "REAL_QID", "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET")
)


class SendBack:
    """Gives messages that failed back to the group.

    Args:
        routes: Where brokers are.
        group: The consumer group.
        retries_max: How often a message comes again before it goes to the dead letters; None: as the group's settings
            at the broker say, 16 if nothing else.
    """

    def __init__(self, routes: Routes, group: str, retries_max: int | None) -> None:
        self._routes = routes
        self._group = group
        self._retries_max = retries_max
        self.retry_topic = f"{RETRY_PREFIX}{group}"

    async def give_back(self, message: Message, delay_level: int) -> bool:
        """Have a message come again; return whether that is sure.

        Args:
            message: The message.
            delay_level: After the time of this level; 0: the longer the more often it failed; less: never, it goes to
                the dead letters.
        """
        try:
            client = await self._routes.broker_of(message.message_queue)
            response = await client.request(self._back(message, delay_level))
            if response.code == ResponseCode.SUCCESS:
                return True
            LOGGER.debug("broker takes no message back code=%d remark=%s", response.code, response.remark)
        except SdkError as error:
            LOGGER.debug("message cannot be sent back queue=%s cause=%s", message.queue, error)
        return await self.send_copy(message, delay_level or FIRST_LEVEL + message.reconsume_times)

    async def send_copy(self, message: Message, delay_level: int) -> bool:
        """Send a copy to the group's retry topic, on any broker; return whether it is stored."""
        try:
            for route in await self._routes.find_for_send(self.retry_topic):
                response = await self._routes.client_of(route).request(
                    self._copy(message, delay_level, route.broker_name)
                )
                if response.code in SEND_STORED_CODES:
                    return True
        except SdkError as error:
            LOGGER.debug("message cannot be sent to the retry topic group=%s cause=%s", self._group, error)
        return False

    def _back(self, message: Message, delay_level: int) -> Command:
        ext = {
            "offset": str(message.physical_offset),
            "group": self._group,
            "delayLevel": str(delay_level),
            "originMsgId": message.properties.get("ORIGIN_MESSAGE_ID") or message.key,
            "originTopic": message.topic,
            "unitMode": "false",
            "bname": message.broker_name,
        }
        if self._retries_max is not None:
            ext["maxReconsumeTimes"] = str(self._retries_max)
        return Command(RequestCode.CONSUMER_SEND_MSG_BACK, ext=ext)

    def _copy(self, message: Message, delay_level: int, broker_name: str) -> Command:
        retries_max = RETRIES_USUAL if self._retries_max is None else self._retries_max
        tried = retries_max if delay_level < 0 else message.reconsume_times
        properties = {name: value for name, value in message.properties.items() if name not in NOT_SENT_BACK}
        properties.setdefault("RETRY_TOPIC", message.topic)
        properties.setdefault("ORIGIN_MESSAGE_ID", message.key)
        if delay_level > 0:
            properties["DELAY"] = str(delay_level)
        ext = {
            "a": self._group,
            "b": self.retry_topic,
            "c": TEMPLATE_TOPIC,
            "d": "1",
            "e": "0",
            "f": "0",
            "g": str(time.time_ns() // 1_000_000),
            "h": str(message.flag),
            "i": encode_properties_text({name.encode(): value.encode() for name, value in properties.items()}),
            "j": str(tried + 1),
            "k": "false",
            "l": str(retries_max),
            "m": "false",
            "n": broker_name,
        }
        return Command(RequestCode.SEND_MESSAGE_V2, ext=ext, body=message.body)


def as_sent(message: Message) -> Message:
    """Return a message of a retry topic with the topic that it was sent to."""
    topic = message.properties.get("RETRY_TOPIC")
    if topic is None or not message.topic.startswith(RETRY_PREFIX):
        return message
    return dataclasses.replace(message, topic=topic)
