from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from spark_analytics.options import StreamRefusedError

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_stream_is_refused_when_it_is_loaded(spark, tmp_path):
    reader = spark.readStream.format("LMQ").option("path", str(tmp_path))
    with pytest.raises(StreamRefusedError, match="the log is read in batches"):
        reader.load()
    with pytest.raises(StreamRefusedError):
        spark.readStream.load(str(tmp_path), format="lmq")


def test_other_formats_are_streamed_as_before(spark):
    assert spark.readStream.format("rate").load().isStreaming
    assert spark.readStream.load(format="rate").isStreaming
    reader = spark.readStream.format("lmq")
    assert reader.format("rate").load().isStreaming
