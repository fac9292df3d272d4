"""What a message's fields are called in AMQP, and what those of AMQP are called elsewhere: the door's one table.

| the envelope's field | AMQP |
|---|---|
| content type, correlation, time to live | `content_type`, `correlation_id`, `expiration` |
| where answers go | `reply_to` as a routing key, and the header `x-opt-reply-to-topic` as a topic |
| correlation that is no text of 255 bytes | the header `x-correlation-id` |
| payload format | the header `x-mqtt-payload-format` |
| user properties | headers |

What only AMQP has is a user property elsewhere, named in `TOLD_NAMES`, and the property again where it comes back.
A header that is no text is one as a user property, and `x-amqp-types` says which types headers had.

Source: docs/protocols/crossing.md.
"""

from __future__ import annotations

RESPONSE_TOPIC_HEADER = b"x-opt-reply-to-topic"
FORMAT_HEADER = b"x-mqtt-payload-format"
CORRELATION_HEADER = b"x-correlation-id"
TOLD_PREFIX = b"x-amqp-"
TYPES_NAME = b"x-amqp-types"  # of headers: a letter and the escaped name for each, `=` between
USER_ID_NAME = b"x-amqp-user-id"  # never a property again: AMQP's consumers may trust that one

# By the property's number in a block, the highest flag first.
TOLD_NAMES = (
    b"",
    b"x-amqp-content-encoding",
    b"",
    b"",
    b"x-amqp-priority",
    b"",
    b"x-amqp-reply-to",  # where it is no topic
    b"",
    b"x-amqp-message-id",
    b"x-amqp-timestamp",
    b"x-amqp-type",
    USER_ID_NAME,
    b"x-amqp-app-id",
    b"x-amqp-cluster-id",
)
TOLD_FLAGS = 0x4AFC  # content encoding, priority, reply-to, and from the message identifier on
CONTENT_ENCODING = 1
PRIORITY = 4
REPLY_TO = 6
TIMESTAMP = 9
NUMBER_BY_NAME = {name: number for number, name in enumerate(TOLD_NAMES) if name and name != USER_ID_NAME}
