"""Any bytes at the MQTT decoder: no crash, no hang, no growth, and cut in pieces they mean what they mean whole.

`python -m tests.fault.fuzz_mqtt --cases 10000000`. Where atheris is installed it chooses the bytes by what they reach;
else they are mutations of the kept cases, which are reproducible by `--seed`.
"""

from __future__ import annotations

from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import MqttError
from gateway.mqtt.events import AckRun, PingRun, PublishRun, RunPool
from gateway.mqtt.packets import Connect, Disconnect, Subscribe, Unsubscribe
from tests.fault.fuzzing import Fuzz
from tests.support import mqtt

PACKET_BYTES_MAX = 65_536
LEVELS = (3, 4, 5)
DECODER = ("codec", "columns", "connection", "events", "packets", "properties", "publish_properties", "topics")
POOL = RunPool()


def run_case(case):
    """Check one case: its first byte says version and state, the second how it is cut, the rest is what comes."""
    if len(case) < 2:
        return
    level = LEVELS[case[0] % 3]
    is_open = case[0] & 4 > 0
    whole = _outcome(level, case[2:], is_open=is_open, size=len(case))
    if case[1] % 32:
        assert _outcome(level, case[2:], is_open=is_open, size=case[1] % 32) == whole


def _outcome(level, data, *, is_open, size):
    """Return what a connection tells of bytes that come `size` at a time, up to the end of the connection."""
    connection = MqttConnection(POOL, PACKET_BYTES_MAX, 10_000)
    told = []
    try:
        if is_open:
            hello = {3: mqtt.connect(protocol=b"MQIsdp", level=3), 4: mqtt.connect(), 5: mqtt.connect_5()}[level]
            _feed(connection, hello, [])
        for start in range(0, len(data), size):
            _feed(connection, data[start : start + size], told)
    except MqttError as error:
        told.append((type(error).__name__, error.clause, int(error.code)))
        connection.say_why(error.code, str(error))
    said = connection.data_to_send()
    told.append(said)
    assert len(said) <= 1_000 + len(data)
    return told


def _feed(connection, data, told):
    connection.receive_data(data, 1_000)
    for event in connection.events():
        _tell(event, connection, told)


def _tell(event, connection, told):
    if isinstance(event, PublishRun):
        batch = event.columns.batch
        for i in range(batch.count):
            body = bytes(batch.buf[batch.body_start[i] : batch.body_end[i]])
            extra = bytes(batch.extra[batch.extra_start[i] : batch.extra_end[i]]) if batch.extra_end[i] else b""
            told.append((batch.topics[batch.route_index[i]], body, batch.flag[i], batch.tag[i], extra))
        event.release()
    elif isinstance(event, AckRun):
        columns = event.columns
        told.extend((columns.ack_type, columns.packet_ids[i], columns.codes[i]) for i in range(columns.ack_count))
        event.release()
    elif isinstance(event, PingRun):
        told.extend([("ping",)] * event.count)
    elif isinstance(event, Subscribe | Unsubscribe):
        told.append((event.packet_id, *event.filters))
    else:
        told.append(event)
        if isinstance(event, Connect):
            connection.accept(1_000, -1, 0, 32)
        assert isinstance(event, Disconnect) is (connection.state == 4)


FUZZ = Fuzz("mqtt_cases.txt", run_case, [f"gateway.mqtt.{name}" for name in DECODER])

if __name__ == "__main__":
    FUZZ.main()
