"""Settings of what operators are told besides logs and metrics."""

from __future__ import annotations

from pydantic import BaseModel


class EventsSettings(BaseModel, frozen=True, extra="forbid"):
    """Who comes and goes, and what is made, changed and removed, as messages."""

    mqtt: bool = False  # at topics below $events/, as JSON; who may subscribe there is for rules to say
    amqp: bool = False  # at the exchange amq.rabbitmq.event of the virtual host /, as RabbitMQ's plugin does

    @property
    def is_on(self) -> bool:
        """Whether they are told at all."""
        return self.mqtt or self.amqp
