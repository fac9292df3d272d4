"""How far the C compiler optimises each compiled module. docs/benchmarks.md has what was measured."""

from __future__ import annotations

# Without four passes that take an eighth of the compiler's time and change nothing that was measured.
O2 = ["-O2", "-fno-schedule-insns2", "-fno-tree-vectorize", "-fno-gcse", "-fno-tree-pre"]
LOOPS = {  # of each message: -O2 takes half as long again as -O1, and a benchmark sees it here
    "core": "broker envelope message",
    "core/lmq": "router topic_trie",
    "core/store": "commit_log dispatch_set dispatcher embedded head_index journal message_store queue_index "
    "queue_reader record record_write",
    "gateway/amqp": "codec delivery_codec property_block shared_queue stored_properties unacked",
    "gateway/mqtt": "arriving codec columns connection conversation delivery inflight publish_block publish_encoder "
    "publish_properties publishing session",
    "gateway/rocketmq": "answer_codec codec picked_records send_codec send_run",
    "lmq/remoting": "commands frames",
}
RARE = {  # others reach into their classes; no load of messages runs a thousandth of its instructions here
    "core": "engine metrics room",
    "core/store": "checked_file segments",
    "gateway/amqp": "channel first_message heartbeat",
    "gateway/mqtt": "holding leaving services",
    "gateway/net": "endpoint",
    "gateway/rocketmq": "held",
    "gateway/runtime": "flush_thread",
}
QUICK, SLOW = (
    {f"{folder}/{name}.py" for folder, names in of.items() for name in names.split()} for of in (LOOPS, RARE)
)


def level_of(module: str) -> list[str]:
    """Return the C compiler's arguments for a module, which is a path from here."""
    if module in SLOW:
        return ["-O0"]
    return O2 if module in QUICK else ["-O1", "-fexpensive-optimizations"]
