"""Properties of PUBLISH packets: any of them, as a record has them, and as a client is sent them."""

from __future__ import annotations

from hypothesis import strategies as st

from gateway.mqtt.properties import OF_PUBLISH, Property, decode_properties, encode_properties, write_varint
from gateway.mqtt.publish_block import BlockWriter, block_bytes_max
from gateway.mqtt.publish_properties import SOUND, PublishProperties, extra_bytes_max

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12).map(str.encode)
names = texts | st.sampled_from([b"LMQ_TOPIC", b"CONTENT_TYPE", b"TAGS", b"WAIT", b"a", b"a"])
FIELDS = {
    Property.PAYLOAD_FORMAT: st.integers(0, 1),
    Property.MESSAGE_EXPIRY: st.integers(0, 2**32 - 1),
    Property.CONTENT_TYPE: texts,
    Property.RESPONSE_TOPIC: st.sampled_from([b"a/b", b"\xc3\xa4"]),
    Property.CORRELATION: st.binary(max_size=12),
    Property.TOPIC_ALIAS: st.integers(1, 65_535),
}


@st.composite
def items(draw):
    made = [(name, draw(FIELDS[name])) for name in draw(st.lists(st.sampled_from(list(FIELDS)), unique=True))]
    for pair in draw(st.lists(st.tuples(names, texts), max_size=4)):
        made.insert(draw(st.integers(0, len(made))), (Property.USER, pair))
    return made


def stored(block):
    """Return the properties that a record gets for a block without its length."""
    reader = PublishProperties()
    assert reader.read(b"x" + block, 1, 1 + len(block)) == SOUND
    out = bytearray(extra_bytes_max(len(block)))
    end = reader.write_extra(b"x" + block, 1 + len(block), out, 0)
    return bytes(out[:end])


def delivered(extra, age_ms=0, identifier=0):
    writer = BlockWriter()
    out = bytearray(block_bytes_max(len(extra)) + 4)
    end = writer.write(extra, 0, len(extra), age_ms, identifier, out, 0)
    found, after = decode_properties(bytes(out[:end]), 0, OF_PUBLISH | {Property.SUBSCRIPTION_ID})
    assert after == end
    return found


def block_of(*made):
    encoded = encode_properties(made)
    return encoded[len(write_varint(len(encoded))) :] if len(encoded) < 128 else encoded[2:]
