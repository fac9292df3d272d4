from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("pyspark")

from spark_analytics.session import local_settings, open_session


def test_settings_suit_one_machine():
    settings = local_settings(1)
    assert settings["spark.master"] == "local[1]"
    assert settings["spark.sql.shuffle.partitions"] == "2"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert local_settings(8)["spark.default.parallelism"] == "8"


def test_a_cluster_can_be_named(monkeypatch):
    monkeypatch.setenv("SPARK_MASTER_URL", "spark://here:7077")
    assert local_settings(2)["spark.master"] == "spark://here:7077"


@pytest.mark.spark
@pytest.mark.slow
def test_an_open_session_is_used_as_it_is(spark):
    assert open_session("another") is spark
    assert spark.sparkContext.appName == "tests"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
