from __future__ import annotations

import pytest

from core.lmq.queue_name import mqtt_queue_name
from gateway.admin.ours.light_names import find_named
from gateway.admin.queue_metrics import LightEntry
from tests.support.admin import make_view
from tests.support.gateway import running_gateway

pytestmark = pytest.mark.asyncio


async def test_a_name_may_be_a_filter_of_mqtt_and_a_queue_of_rocketmq(tmp_path):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        view.rocketmq.topics.open_for_send(b"Orders", b"TBW102", 1)
        long = "x" * 300  # its light queue is named by a digest
        for key in (b"Orders/0", mqtt_queue_name(b"Orders/0"), mqtt_queue_name(long.encode()), b"%LMQ%a/0", b"Other/0"):
            view.broker.intern_queue(key)
        names = ["Orders/0", "Orders/0", long, "%LMQ%a/0", "Other/0", "Orders/1", "Orders", "/", "LMQ_PARENT/0"]
        assert await find_named(view, names) == [
            LightEntry("mqtt", "Orders/0", 0, 0, 0),
            LightEntry("rocketmq", "Orders/0", 0, 0, 0),
            LightEntry("mqtt", long, 0, 0, 0),
        ]
