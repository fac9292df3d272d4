from __future__ import annotations

import os
import sys

import pytest

pytest.importorskip("pyspark")

from spark_analytics.session import open_session, session_settings


def test_settings_suit_one_machine():
    settings = session_settings(None, 1)
    assert settings["spark.master"] == "local[1]"
    assert settings["spark.sql.shuffle.partitions"] == "2"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert session_settings(None, 8)["spark.default.parallelism"] == "8"


def test_on_a_cluster_executors_must_reach_the_driver():
    settings = session_settings("spark://here:7077", 2)
    assert settings["spark.master"] == "spark://here:7077"
    assert "spark.driver.host" not in settings


@pytest.mark.timeout(300)
@pytest.mark.spark
@pytest.mark.slow
def test_an_open_session_is_used_as_it_is(spark):
    assert open_session("another") is spark
    assert spark.sparkContext.appName == "tests"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
