from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from spark_analytics.options import StreamRefusedError
from tests.support.sources import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_stream_is_refused_when_it_is_loaded(spark, tmp_path):
    reader = spark.readStream.format("LMQ").option("path", str(tmp_path))
    with pytest.raises(StreamRefusedError, match="the log is read in batches"):
        reader.load()
    with pytest.raises(StreamRefusedError):
        spark.readStream.load(str(tmp_path), format="lmq")


def test_a_stream_is_refused_in_a_session_that_registers_the_source_by_itself(tmp_path):
    program = f"""
from pyspark.sql import SparkSession
from spark_analytics import session
from spark_analytics.source import LmqDataSource
session.prepare_environment()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(LmqDataSource)
try:
    spark.readStream.format("lmq").option("path", {str(tmp_path)!r}).load()
except Exception as error:
    print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["StreamRefusedError"]


def test_other_formats_are_streamed_as_before(spark):
    assert spark.readStream.format("rate").load().isStreaming
    assert spark.readStream.load(format="rate").isStreaming
    reader = spark.readStream.format("lmq")
    assert reader.format("rate").load().isStreaming
