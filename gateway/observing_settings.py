"""Settings of what operators are told."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field


class LogSettings(BaseModel, frozen=True, extra="forbid"):
    """What the gateway writes on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"  # the least that is written
    format: Literal["text", "json"] = "text"  # one line a record: key=value text, or a JSON object


class EventsSettings(BaseModel, frozen=True, extra="forbid"):
    """Who comes and goes, and what is made, changed and removed, as messages."""

    mqtt: bool = False  # at topics below $events/, as JSON; rules say which users may subscribe there
    amqp: bool = False  # at the exchange amq.rabbitmq.event of the virtual host /, as RabbitMQ's plugin does

    @property
    def is_on(self) -> bool:
        """Whether they are told at all."""
        return self.mqtt or self.amqp


def _check_collector(text: str) -> str:
    if not re.fullmatch("https?://[^ ]+", text):
        raise ValueError("must be an address, such as http://127.0.0.1:4318")
    return text


Url = Annotated[str, AfterValidator(_check_collector)]


class TelemetrySettings(BaseModel, frozen=True, extra="forbid"):
    """What is sent by OpenTelemetry's protocol (OTLP over HTTP), such as to a collector."""

    traces: bool = False  # spans of messages: publish, route, deliver, ack
    metrics: bool = False  # the numbers of /metrics
    endpoint: Url = "http://127.0.0.1:4318"  # v1/traces and v1/metrics are below it
    service_name: Annotated[str, Field(min_length=1, max_length=255)] = "lmq-gateway"  # what it is called there
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01  # of messages that say of no trace (traceparent)
    interval_s: Annotated[int, Field(ge=1, le=3_600)] = 15  # between two exports of metrics

    @property
    def is_on(self) -> bool:
        """Whether anything is sent."""
        return self.traces or self.metrics
