"""From the log's messages to facts, and from facts to what is told of a device, a topic or a queue.

A fact is a row of the histogram (window, device, protocol, fan-out) -> messages and bytes: sums, so facts of parts of
a log add up, and percentiles taken from them are exact. All percentiles are nearest-rank.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, functions as fn

from spark_analytics.schema import INDEX_ENTRY_BYTES

SKEW_MS = 60_000  # a born time further than this from the store time is counted as a wrong clock
_SUMMED = ("messages", "record_bytes", "body_bytes", "dispatch_bytes", "skewed")
FACT_SOURCE_COLUMNS = "device,protocol,born,stored,fanout,record_bytes,body_bytes,dispatch_bytes"


def make_facts(messages: DataFrame, window_ms: int) -> DataFrame:
    """Return the histogram of `messages`, in windows of the store's time."""
    stored_ms = fn.unix_millis("stored")
    skew_ms = fn.abs(stored_ms - fn.unix_millis("born"))
    return (
        messages.withColumn(
            "window_start",
            fn.timestamp_millis(stored_ms - fn.pmod(stored_ms, fn.lit(window_ms).cast("bigint"))),
        )
        .withColumn("messages", fn.lit(1).cast("bigint"))
        .withColumn("skewed", (skew_ms > SKEW_MS).cast("bigint"))
        .groupBy("window_start", "device", "protocol", "fanout")
        .agg(
            *_sums(),
            fn.min("stored").alias("first_stored"),
            fn.max("stored").alias("last_stored"),
        )
    )


def _sums() -> list[Column]:
    return [fn.sum(name).alias(name) for name in _SUMMED]


def _fanout() -> Column:
    return fn.col("fanout").cast("bigint")


def stored_once_bytes() -> Column:
    """Return what a fact's messages take in this store: records, and an index entry for each queue.

    The record's own topic is a queue as well.
    """
    return fn.col("record_bytes") + INDEX_ENTRY_BYTES * (_fanout() + 1) * fn.col("messages")


def copied_bytes() -> Column:
    """Return what they would take with a copy in each queue, without the list of queues but with an index entry.

    A message to no queue counts as one copy.
    """
    copies = fn.greatest(_fanout(), fn.lit(1).cast("bigint"))
    plain = fn.col("record_bytes") - fn.col("dispatch_bytes")
    return copies * plain + copies * INDEX_ENTRY_BYTES * fn.col("messages")


def describe_devices(facts: DataFrame) -> DataFrame:
    """Return one row for each device: counts, bytes, and the fan-out's mean, percentiles and maximum."""
    by_fanout = facts.groupBy("device", "fanout").agg(
        *_sums(),
        fn.min("first_stored").alias("first_stored"),
        fn.max("last_stored").alias("last_stored"),
    )
    device = Window.partitionBy("device")
    up_to_here = device.orderBy("fanout").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = (
        by_fanout.withColumn("rank_to", fn.sum("messages").over(up_to_here))
        .withColumn("rank_count", fn.sum("messages").over(device))
        .withColumn("dispatches", _fanout() * fn.col("messages"))
        .withColumn("stored_once_bytes", stored_once_bytes())
        .withColumn("copied_bytes", copied_bytes())
    )
    return ranked.groupBy("device").agg(
        fn.sum("messages").alias("messages"),
        fn.sum("dispatches").alias("dispatches"),
        fn.sum("stored_once_bytes").alias("stored_once_bytes"),
        fn.sum("copied_bytes").alias("copied_bytes"),
        fn.sum("body_bytes").alias("body_bytes"),
        (fn.sum("dispatches") / fn.sum("messages")).alias("fanout_mean"),
        _nearest_rank(50).alias("fanout_p50"),
        _nearest_rank(95).alias("fanout_p95"),
        fn.max("fanout").alias("fanout_max"),
        fn.min("first_stored").alias("first_stored"),
        fn.max("last_stored").alias("last_stored"),
    )


def _nearest_rank(percent: int) -> Column:
    reached = fn.col("rank_to") * 100 >= fn.col("rank_count") * percent
    return fn.min(fn.when(reached, fn.col("fanout")))


def describe_topics(dispatches: DataFrame) -> DataFrame:
    """Return one row for each topic, from the view `dispatches`."""
    return dispatches.groupBy("topic").agg(
        fn.sum("messages").alias("messages"),
        fn.sum(_fanout() * fn.col("messages")).alias("dispatches"),
        fn.sum("record_bytes").alias("record_bytes"),
        fn.max("fanout").alias("fanout_max"),
        fn.max("last_stored").alias("last_stored"),
    )


def describe_queues(dispatches: DataFrame) -> DataFrame:
    """Return one row for each light queue: its messages, and what they would take as copies of its own."""
    plain = fn.col("record_bytes") - fn.col("dispatch_bytes")
    copies = plain + INDEX_ENTRY_BYTES * fn.col("messages")
    return (
        dispatches.select(
            fn.explode("queues").alias("queue"),
            "messages",
            copies.alias("copied_bytes"),
            "first_stored",
            "last_stored",
        )
        .groupBy("queue")
        .agg(
            fn.sum("messages").alias("messages"),
            fn.sum("copied_bytes").alias("copied_bytes"),
            fn.min("first_stored").alias("first_stored"),
            fn.max("last_stored").alias("last_stored"),
        )
    )
