"""What the gateway is called in answers of RabbitMQ's API."""

from __future__ import annotations

import socket

CLUSTER = "lmq"
NODE = f"lmq@{socket.gethostname().partition('.')[0]}"
LIKE = "3.13.7"  # the version of RabbitMQ's API that this is, for tools that ask for one
OPERATOR_POLICY = "operator_policy"  # what files of definitions call the parameters that are such
