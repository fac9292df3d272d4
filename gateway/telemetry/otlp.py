"""What sends spans and metrics by OTLP over HTTP, each from a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from prometheus_client.metrics_core import Metric as Family

from gateway.settings.observing import TelemetrySettings
from gateway.telemetry.choosing import Choice
from gateway.telemetry.otlp_metrics import SCOPE, to_metrics_data
from gateway.telemetry.tracer import MessageTracer
from gateway.version import VERSION

TIMEOUT_S = 5.0  # chosen: the next export is sent after at most this
STOP_S = 1.0  # chosen, of the 5 s in which the gateway stops


class OtlpSender:
    """Sends as the settings say; what the receiver does not take is dropped, and said in the log by the library.

    Args:
        settings: Where to, and what.
    """

    def __init__(self, settings: TelemetrySettings) -> None:
        base = settings.endpoint.rstrip("/")
        self._resource = Resource.create({"service.name": settings.service_name, "service.version": VERSION})
        self._started_ns = time.time_ns()
        self._provider: TracerProvider | None = None
        self._spans: SpanExporter | None = None
        if settings.traces:
            self._spans = exporter = OTLPSpanExporter(f"{base}/v1/traces", timeout=TIMEOUT_S)
            self._provider = TracerProvider(ALWAYS_ON, self._resource, shutdown_on_exit=False)
            self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._metrics: OTLPMetricExporter | None = None
        if settings.metrics:
            self._metrics = OTLPMetricExporter(f"{base}/v1/metrics", timeout=TIMEOUT_S)
        self._thread = ThreadPoolExecutor(1, "lmq-otlp")
        self._sending: Future[MetricExportResult] | None = None

    def make_tracer(self, ratio: float) -> MessageTracer | None:
        """Return what makes spans of messages, None where there are none."""
        if self._provider is None:
            return None
        return MessageTracer(self._provider.get_tracer(SCOPE, VERSION), Choice(ratio))

    def send_metrics(self, families: Iterable[Family]) -> None:
        """Send the numbers of now, unless the last ones are still on their way."""
        if self._metrics is None or (self._sending is not None and not self._sending.done()):
            return
        data = to_metrics_data(families, self._resource, self._started_ns, time.time_ns())
        self._sending = self._thread.submit(self._metrics.export, data)

    def stop(self) -> None:
        """Send what waits, for a moment; blocks."""
        if self._provider is not None and self._spans is not None:
            sending = threading.Thread(target=self._provider.force_flush, name="lmq-otlp-last", daemon=True)
            sending.start()
            sending.join(STOP_S)
            self._spans.shutdown()  # one that waits to try again is not waited for
            self._provider.shutdown()
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._metrics is not None:
            self._metrics.shutdown(STOP_S * 1_000)
