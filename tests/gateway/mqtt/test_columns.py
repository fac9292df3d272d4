from __future__ import annotations

from core.message import FLAG_MARK
from gateway.mqtt.columns import RunColumns, encode_acks, encode_id_packets, encode_told_acks
from gateway.mqtt.properties import Property, encode_properties
from tests.support import mqtt


def filled(*messages):
    columns = RunColumns(8)
    columns.batch.count = len(messages)
    for i, (qos, packet_id, code) in enumerate(messages):
        columns.batch.flag[i] = FLAG_MARK | qos
        columns.batch.tag[i] = packet_id
        columns.codes[i] = code
    return columns


def test_messages_are_acknowledged_by_their_qos_in_their_order():
    columns = filled((1, 5, 0), (2, 6, 0), (0, 0, 0), (1, 65_535, 0))
    assert encode_acks(columns, 4) == mqtt.puback(5) + mqtt.pubrec(6) + mqtt.puback(65_535)
    assert encode_acks(columns, 1) == mqtt.puback(5)


def test_reasons_are_told_where_there_are_some():
    columns = filled((1, 5, 0x87), (2, 6, 0x97), (1, 7, 0))
    assert encode_acks(columns, 3) == b"\x40\x03\0\x05\x87\x50\x03\0\x06\x97" + mqtt.puback(7)


def test_reasons_in_words_go_with_their_codes_as_far_as_a_packet_may_be_as_large():
    columns = filled((1, 5, 0x87), (2, 6, 0x97), (0, 0, 0x87), (1, 7, 0))
    acks = encode_acks(columns, 4)
    assert (columns.answer_count, columns.failure_count) == (3, 2)
    words = encode_properties([(Property.REASON, b"why")])
    told = b"\x40\x0a\0\x05\x87" + words
    rest = b"\x50\x03\0\x06\x97" + mqtt.puback(7)
    assert encode_told_acks(columns, 4, {0x87: words}, 0) == told + rest
    assert encode_told_acks(columns, 4, {0x87: words}, len(told)) == told + rest
    assert encode_told_acks(columns, 4, {0x87: words}, len(told) - 1) == acks
    assert encode_told_acks(columns, 1, {0x87: words}, 0) == told


def test_packet_identifiers_are_answered_but_for_those_that_failed():
    columns = RunColumns(4)
    columns.ack_count = 3
    for i, (packet_id, code) in enumerate(((1, 0), (2, -1), (3, 0x92))):
        columns.packet_ids[i] = packet_id
        columns.codes[i] = code
    assert encode_id_packets(columns, 0x62) == mqtt.pubrel(1) + b"\x62\x03\0\x03\x92"
    columns.forget_codes()
    assert encode_id_packets(columns, 0x70) == mqtt.pubcomp(1) + mqtt.pubcomp(2) + mqtt.pubcomp(3)
