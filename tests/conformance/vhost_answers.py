"""What RabbitMQ is asked about virtual hosts, and how its answers are written down: the same is asked of the door.

A scene is a list of steps. `open` connects to a virtual host as guest, `declare` declares a queue on the connection
that was opened first, `limit` sets a limit, `make` and `delete` are an operator's; the answers are lines.
"""

from __future__ import annotations

SCENES = {
    "not there": [("open", "none"), ("open", ""), ("open", "é"), ("open", "a/b")],
    "as many connections as there may be": [
        ("make", "v"), ("limit", "v", "max-connections", 1), ("open", "v"), ("open", "v"),
    ],
    "no connection at all": [("make", "v"), ("limit", "v", "max-connections", 0), ("open", "v")],
    "a limit below nothing": [("make", "v"), ("limit", "v", "max-connections", -1), ("open", "v"), ("open", "v")],
    "as many queues as there may be": [
        ("make", "v"), ("limit", "v", "max-queues", 2), ("open", "v"),
        ("declare", "a"), ("declare", "b"), ("declare", "b"), ("declare", "c"),
    ],
    "deleted with a connection": [("make", "v"), ("open", "v"), ("delete", "v"), ("open", "v")],
}  # fmt: skip
