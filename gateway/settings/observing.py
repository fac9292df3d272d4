"""Settings of what operators are told."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field


class LogSettings(BaseModel, frozen=True, extra="forbid"):
    """What the gateway writes on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"  # lowest level that is written
    format: Literal["text", "json"] = "text"  # one line a record: key=value text, or a JSON object


class EventsSettings(BaseModel, frozen=True, extra="forbid"):
    """Events as messages: clients that connect and disconnect, things that are made, changed and removed."""

    mqtt: bool = False  # publish events to topics below $events/, as JSON; rules say which users may subscribe there
    # publish events to the exchange amq.rabbitmq.event of the virtual host /, as RabbitMQ's plugin does
    amqp: bool = False

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
    """Traces and metrics by OpenTelemetry's protocol (OTLP over HTTP)."""

    traces: bool = False  # send spans of messages: publish, route, deliver, ack
    metrics: bool = False  # send the numbers of /metrics
    endpoint: Url = "http://127.0.0.1:4318"  # URL of the receiver, above v1/traces and v1/metrics
    # service name of the gateway at the receiver
    service_name: Annotated[str, Field(min_length=1, max_length=255)] = "lmq-gateway"
    # part of the messages without a traceparent that get a trace
    sample_ratio: Annotated[float, Field(ge=0, le=1)] = 0.01
    interval_s: Annotated[int, Field(ge=1, le=3_600)] = 15  # time between two exports of metrics

    @property
    def is_on(self) -> bool:
        """Whether anything is sent."""
        return self.traces or self.metrics
