"""A local Spark session with settings for one machine; a session that is already there is left alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_analytics.java import Java, find_java
from spark_analytics.source import LmqDataSource

_JVM_FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
MASTER_VARIABLE = "SPARK_MASTER_URL"  # of a cluster, where the report is to run on one
_LOOPBACK = "127.0.0.1"
_CACHE_VARIABLE = "XDG_CACHE_HOME"


def open_session(app_name: str = "lmq") -> SparkSession:
    """Return the active session, or a new local one, with the format `lmq` registered.

    Raises:
        JavaNotFoundError: A new session is needed, and there is no Java for it.
    """
    session = SparkSession.getActiveSession() or _new_session(app_name)
    session.dataSource.register(LmqDataSource)
    return session


def _new_session(app_name: str) -> SparkSession:
    prepare_environment()
    builder = SparkSession.builder.appName(app_name)
    for name, value in session_settings(os.environ.get(MASTER_VARIABLE), os.cpu_count() or 1).items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("FATAL")  # what a task says comes up as an exception
    return session


def prepare_environment() -> Java:
    """Name the Java and the Python to use in the environment that Spark's own processes inherit."""
    java = find_java(os.environ, _cache_dir() / "java")
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if MASTER_VARIABLE not in os.environ:
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)  # or Spark warns that it takes the outer address
    return java


def _cache_dir() -> Path:
    return Path(os.environ.get(_CACHE_VARIABLE) or Path.home() / ".cache") / "lmq-gateway"


def session_settings(master: str | None, cores: int) -> dict[str, str]:
    """Return Spark's settings for `master`, or for this machine alone with its `cores`.

    The defaults suit a cluster: 200 shuffle partitions take seconds for a table of a thousand rows, and the driver
    listens on the outer address.
    """
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": _JVM_FLAGS,
        "spark.python.unix.domain.socket.enabled": "true",
    }
    if master is not None:
        return settings | {"spark.master": master}
    partitions = str(max(2, cores))
    return settings | {
        "spark.master": f"local[{cores}]",
        "spark.sql.shuffle.partitions": partitions,
        "spark.default.parallelism": partitions,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
    }
