"""Names of the light queues behind MQTT filters and AMQP queues."""

from __future__ import annotations

from core.lmq.queue_name import amqp_queue_name, mqtt_queue_name


def mqtt_queue(topic_filter: str) -> str:
    """Return the light queue of an MQTT topic filter, such as `site/+/temp`."""
    return mqtt_queue_name(topic_filter.encode()).decode()


def amqp_queue(queue: str, vhost: str = "/") -> str:
    """Return the light queue of an AMQP queue."""
    return amqp_queue_name(vhost.encode(), queue.encode()).decode()
