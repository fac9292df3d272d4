"""One Spark session for all tests that need a JVM; they are left out, with the reason, where there is none."""

from __future__ import annotations

import os

import pytest

from spark_analytics.java import JavaNotFoundError


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    session_module = pytest.importorskip("spark_analytics.session")

    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("SPARK_")] + ["JAVA_TOOL_OPTIONS", "HADOOP_CONF_DIR"]:
        os.environ.pop(name, None)
    try:
        session = session_module.open_session("tests")
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(kept)
