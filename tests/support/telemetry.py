"""A broker that is traced into memory, and a receiver of what is sent by OTLP."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from core.broker import Broker
from core.message import StoredBatch
from core.metrics import Metrics
from core.properties import encode_properties
from gateway.telemetry.choosing import Choice
from gateway.telemetry.traced_engine import TracedEngine
from gateway.telemetry.tracer import MessageTracer
from tests.support.store import NOW_MS, make_batch, open_store

GROUP = b"amqp"


class TracedBroker:
    """Publishes, reads and takes; `at_ns` is the moment."""

    def __init__(self, data_dir, ratio=0):
        self.at_ns = 1_000_000
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = MessageTracer(provider.get_tracer("test"), Choice(ratio), lambda: self.at_ns)
        self.store = open_store(data_dir)
        self.engine = TracedEngine(self.store, is_sync=False)
        self.engine.tracer = self.tracer
        self.broker = Broker(self.engine, parent_topic=b"LMQ_PARENT", metrics=Metrics())
        self.engine.pop_names = self.broker.pop.journal.names

    def publish(self, *names, parent="", count=1, at=0):
        """Publish messages to light queues, that with number `at` with a trace."""
        route = self.broker.route_queues(b"", names)
        said = encode_properties([(b"traceparent", parent.encode())]) if parent else b""
        self.broker.publish_batch(
            make_batch([(route, b"body", said if i == at else b"") for i in range(count)]), NOW_MS
        )

    def take(self, name, count_max=8):
        """Take messages of a light queue; return its pop queue, and the first offset."""
        pop = self.broker.pop.open(name, GROUP)
        into = StoredBatch(count_max)
        assert pop.take(into, count_max, 1 << 20, 0, NOW_MS)
        return pop, into.queue_offset[0]

    def read(self, name):
        """Read all of a light queue."""
        self.broker.read(self.broker.find_queue(name), 0, StoredBatch(16), 16, 1 << 20)

    def spans(self):
        """Return the last span of each step."""
        return {span.name.split()[0]: span for span in self.exporter.get_finished_spans()}

    def close(self):
        self.store.close()


class OtlpReceiver:
    """Takes what is sent by OTLP over HTTP. Use as a context manager; `endpoint` is its address."""

    def __init__(self):
        self.spans = []
        self.metrics = {}
        self.arrived = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                with receiver.arrived:
                    receiver.take(self.path, body)
                    receiver.arrived.notify_all()
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path, body):
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = {one.key: one.value.string_value for one in resource.resource.attributes}["service.name"]
                self.spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {one.name: one for scope in resource.scope_metrics for one in scope.metrics}

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exc_info):
        self._server.shutdown()
        self._server.server_close()
