"""What the C compiler is told of each compiled module: how far it optimises, and what it takes for a fault.

docs/benchmarks.md has what was measured of the levels. What the environment's `CFLAGS` says comes last.
"""

from __future__ import annotations

import os

# Without Python's own -Wall: nothing shows its warnings, most of them of what Cython itself writes.
FLAGS = ["-g0", "-Wno-all", "-Werror=sign-compare", "-Werror=shift-count-overflow"]
FLAGS += ["-Werror=implicit-function-declaration"]
FLAGS += ["-Werror=incompatible-pointer-types"]  # such as a typed method taken as a value
# What runs once, as a module is imported; clang passes over `optimize`, and need not say so in each module.
FLAGS += ["-DCYTHON_SMALL_CODE=__attribute__((cold,optimize(0)))", "-Wno-attributes"]
# Without four passes that take an eighth of the compiler's time and change nothing that was measured.
O2 = ["-O2", "-fno-schedule-insns2", "-fno-tree-vectorize", "-fno-gcse", "-fno-tree-pre"]
# Without two passes: a message alone takes 1.00 to 1.02 times as long (docs/benchmarks.md).
O1 = ["-O1", "-fexpensive-optimizations", "-fno-tree-dominator-opts", "-fno-tree-pta"]
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
    "core": "engine metrics",
    "core/store": "checked_file segments",
    "gateway/amqp": "channel first_message heartbeat",
    "gateway/mqtt": "holding leaving services",
    "gateway/rocketmq": "held",
    "gateway/runtime": "flush_thread",
}
QUICK, SLOW = (
    {f"{folder}/{name}.py" for folder, names in of.items() for name in names.split()} for of in (LOOPS, RARE)
)


def arguments_of(module: str) -> list[str]:
    """Return the C compiler's arguments for a module, which is a path from here."""
    level = ["-O0"] if module in SLOW else O2 if module in QUICK else O1
    return level + FLAGS + os.environ.get("CFLAGS", "").split()
