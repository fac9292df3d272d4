from __future__ import annotations

import tracemalloc

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder

from gateway.admin.exposition import expose
from tests.support.admin import make_view
from tests.support.gateway import running_gateway

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.1"
)
ACCEPTED = [
    "",
    "*/*",
    "text/plain",
    "text/plain;version=1.0.0;escaping=underscores",
    "application/openmetrics-text",
    "application/openmetrics-text;version=1.0.0;escaping=dots",
    "application/openmetrics-text;version=1.0.0;escaping=values",
    PROMETHEUS,
]
NUMBERS = [0, 7, -3, 0.1, 1e-7, 999_999, 1_000_000, 123_456_789, -5_000_000, 1e22, float("inf"), float("-inf"), True]


class OneOfEach:
    def describe(self):
        return ()

    def collect(self):
        yield CounterMetricFamily("lmq_made", 'A "counter" with a \\ and\na line.', 3)
        sizes = GaugeMetricFamily("lmq_sizes", "Sizes.", labels=["queue", "door"])
        for number in NUMBERS:
            sizes.add_metric([f'a "name" \\ of\n{number} é', "mqtt"], number)
        yield sizes
        yield GaugeMetricFamily("lmq_nothing", "No samples.", labels=["queue"])
        yield GaugeMetricFamily("lmq_not_known", "No number.", float("nan"))
        times = HistogramMetricFamily("lmq_seconds", "How long.")
        times.add_metric([], [("0.1", 1), ("+Inf", 2_000_000)], 7.25)
        yield times


@pytest.mark.parametrize("accept", ACCEPTED)
def test_any_metric_is_written_as_the_library_does(accept):
    registry = CollectorRegistry()
    registry.register(OneOfEach())
    encode, kind = choose_encoder(accept)
    assert expose(registry, accept) == (encode(registry), kind)


def test_labels_as_long_as_mqtt_filters_may_be_are_not_kept():
    class Groups:
        number = 0

        def collect(self):
            groups = GaugeMetricFamily("lmq_groups", "Groups.", labels=["group"])
            groups.add_metric([f"{self.number}" * 10_000], 1)
            yield groups

    registry, groups = CollectorRegistry(auto_describe=False), Groups()
    registry.register(groups)
    tracemalloc.start()
    try:
        for groups.number in range(100, 200):
            expose(registry, "")
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.asyncio
@pytest.mark.parametrize("accept", ["", PROMETHEUS])
async def test_metrics_of_a_gateway_have_names_that_need_no_check(tmp_path, accept):
    async with running_gateway(tmp_path) as gateway:
        view = make_view(gateway)
        families = list(view.registry.collect())

        class Kept:
            def collect(self):
                return families

        registry = CollectorRegistry(auto_describe=False)
        registry.register(Kept())
        encode, _ = choose_encoder(accept)
        assert expose(registry, accept)[0] == encode(registry)
        assert len(families) > 50
