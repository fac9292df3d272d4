"""Any bytes at the MQTT decoder: no crash, no hang, no growth, and cut in pieces they mean what they mean whole.

`python -m tests.fault.fuzz_mqtt --cases 10000000`. Where atheris is installed it chooses the bytes by what they reach;
else they are mutations of the kept cases, which are reproducible by `--seed`.
"""

from __future__ import annotations

import argparse
import importlib
import random
import resource
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

from gateway.mqtt.connection import MqttConnection
from gateway.mqtt.errors import MqttError
from gateway.mqtt.events import AckRun, PingRun, PublishRun, RunPool
from gateway.mqtt.packets import Connect, Disconnect, Subscribe, Unsubscribe
from tests.support import mqtt

CORPUS = Path(__file__).parents[1] / "data" / "mqtt_cases.txt"
PACKET_BYTES_MAX = 65_536
CASE_BYTES_MAX = 4_096
LEVELS = (3, 4, 5)
HANG_S = 20  # for STEP cases, which take about a second
STEP = 2_000
GROWTH_KB_MAX = 64 * 1024  # after the first steps
DECODER = ("codec", "columns", "connection", "events", "packets", "properties", "publish_properties", "topics")
POOL = RunPool()


def read_corpus():
    """Return the kept cases: one a line, in hexadecimal."""
    return [bytes.fromhex(line) for line in CORPUS.read_text().splitlines() if line and line[0] != "#"]


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
            connection.accept(1_000)
        assert isinstance(event, Disconnect) is (connection.state == 4)


def mutate(rng, cases):
    """Return another case, made of kept ones."""
    case = bytearray(rng.choice(cases))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(case) + 1)
        way = rng.randrange(6)
        if way == 0 and at < len(case):
            case[at] ^= 1 << rng.randrange(8)
        elif way == 1 and at < len(case):
            case[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif way == 2:
            case[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif way == 3:
            del case[at : at + rng.randrange(1, 9)]
        elif way == 4:
            other = rng.choice(cases)
            case[at:at] = other[2 + rng.randrange(max(len(other) - 2, 1)) :]
        else:
            case += rng.choice(cases)[2:]
    return bytes(case[:CASE_BYTES_MAX])


def run_mutants(count, seed, note=None):
    """Run so many mutations of the kept cases.

    Raises:
        RuntimeError: A case failed; the text is the case, to be kept.
    """
    rng = random.Random(seed)
    cases = read_corpus()
    for number in range(count):
        if note is not None and number % STEP == 0:
            note(number)
        case = mutate(rng, cases)
        try:
            run_case(case)
        except Exception as error:
            raise RuntimeError(f"case {number} of seed {seed}, to be kept in {CORPUS.name}: {case.hex()}") from error


class _Watch:
    """Ends the process where cases hang or memory grows; says how far it is."""

    def __init__(self):
        self.begun = time.monotonic()
        self.peak_kb = 0

    def __call__(self, number):
        signal.alarm(HANG_S)
        now_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if number <= 10 * STEP:
            self.peak_kb = now_kb
        elif now_kb - self.peak_kb > GROWTH_KB_MAX:
            raise RuntimeError(f"memory grew from {self.peak_kb} to {now_kb} KB by case {number}")
        if number % (100 * STEP) == 0:
            rate = number / max(time.monotonic() - self.begun, 0.001)
            _say(f"{number} cases, {rate:.0f} a second, {now_kb} KB")


def _say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def decoder_functions():
    """Return the functions of the decoder that are Python's: all of them in the uncompiled sources."""
    found = []
    for name in DECODER:
        module = importlib.import_module(f"gateway.mqtt.{name}")
        own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
        members = [part for one in own if isinstance(one, type) for part in vars(one).values()]
        bare = [getattr(one, "fget", None) or getattr(one, "__func__", one) for one in [*own, *members]]
        found += [one for one in bare if isinstance(one, FunctionType)]
    return found


def _run_guided(count):
    """Run so many cases that atheris makes of the kept ones, by what they reach in the decoder."""
    import atheris  # noqa: PLC0415

    for function in decoder_functions():
        atheris.instrument_func(function)
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(read_corpus()):
            (Path(folder) / str(number)).write_bytes(case)
        limits = [f"-runs={count}", f"-max_len={CASE_BYTES_MAX}", f"-timeout={HANG_S}"]
        atheris.Setup([sys.argv[0], *limits, folder], run_case)
        atheris.Fuzz()


def main():
    """Run as many cases as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    wanted = parser.parse_args()
    if find_spec("atheris") is not None:
        _run_guided(wanted.cases)
        return
    _say(f"seed {wanted.seed}")
    run_mutants(wanted.cases, wanted.seed, _Watch())
    _say(f"{wanted.cases} cases, none failed")


if __name__ == "__main__":
    main()
