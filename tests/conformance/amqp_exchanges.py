"""What is said to an AMQP server, exchange by exchange, by subject in the modules that are imported here.

The same exchanges are had with RabbitMQ (`record_rabbitmq.py`) and with the door (`test_rabbitmq_replies.py`). Each
begins with a new connection that has channel 1 open, and with neither a queue `q` nor an exchange `x`.
"""

from __future__ import annotations

from tests.conformance.amqp_argument_exchanges import ARGUMENTS
from tests.conformance.amqp_binding_exchanges import BINDINGS
from tests.conformance.amqp_channel_exchanges import CHANNELS
from tests.conformance.amqp_message_exchanges import MESSAGES
from tests.conformance.amqp_queue_exchanges import QUEUES

EXCHANGES = {**QUEUES, **ARGUMENTS, **BINDINGS, **MESSAGES, **CHANNELS}
