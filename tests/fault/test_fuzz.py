"""Any bytes at the decoders of each door: the kept cases, and mutations of them. `make fuzz` runs more."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from tests.fault import fuzz_amqp, fuzz_amqp_door, fuzz_mqtt, fuzz_rocketmq
from tests.fault.fuzzing import Fuzz, mutate
from tests.support.build import IS_COMPILED


class Decoder(NamedTuple):
    fuzz: Fuzz
    cuts: tuple[int, ...]  # in how many ways a kept case is fed
    mutants: int
    sees: set[str]  # functions that a guided run is to see


DECODERS = {
    "mqtt": Decoder(
        fuzz_mqtt.FUZZ,
        (0, 1, 2, 3, 7, 31),
        250,
        {"MqttConnection.receive_data", "decode_properties", "check_topic", "PublishProperties.read"},
    ),
    "amqp": Decoder(
        fuzz_amqp.FUZZ,
        (1, 3, 31),
        100,
        {
            *("AmqpConnection.receive_data", "check_table", "Channel.take_header"),
            *("UnackedRing.cut_settles", "BlockReader.read"),
        },
    ),
    "rocketmq": Decoder(
        fuzz_rocketmq.FUZZ,
        (0, 1, 2, 3, 7, 31),
        250,
        {"Connection.receive_data", "read_header", "read_sends", "SqlFilter.wants", "cut_frames"},
    ),
}
KEPT = [
    pytest.param(decoder, case, id=f"{door}-{case.hex()[:24]}")
    for door, decoder in DECODERS.items()
    for case in decoder.fuzz.read_corpus()
]
OF_EACH_DOOR = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


@pytest.mark.parametrize(("decoder", "case"), KEPT)
def test_kept_case_is_taken_or_refused_the_same_however_it_is_cut(decoder, case):
    for cut in decoder.cuts:
        decoder.fuzz.run_case(case[:1] + bytes((cut,)) + case[2:])


@OF_EACH_DOOR
@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_kept_cases_are_taken_or_refused_too(decoder, seed):
    decoder.fuzz.run_mutants(decoder.mutants, seed)


@OF_EACH_DOOR
def test_failing_case_is_told_so_that_it_can_be_kept(monkeypatch, decoder):
    monkeypatch.setattr(decoder.fuzz, "run_case", lambda case: 1 // 0)
    name = decoder.fuzz.corpus.stem
    with pytest.raises(RuntimeError, match=rf"case 0 of seed 1, to be kept in {name}\.txt: [0-9a-f]+"):
        decoder.fuzz.run_mutants(1, 1)


@OF_EACH_DOOR
def test_seed_gives_the_same_cases_again(decoder):
    cases = decoder.fuzz.read_corpus()
    assert mutate(random.Random(5), cases) == mutate(random.Random(5), cases)


@OF_EACH_DOOR
@pytest.mark.skipif(IS_COMPILED, reason="compiled functions are not Python's")
def test_a_guided_run_sees_the_whole_decoder(decoder):
    assert decoder.sees <= {function.__qualname__ for function in decoder.fuzz.functions()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_client_that_means_well_loses_nothing_beside_those_that_do_not(seed):
    fuzz_amqp_door.FUZZ.run_mutants(fuzz_amqp_door.ROUND, seed)


def test_round_that_fails_is_told_by_its_seed(monkeypatch):
    monkeypatch.setattr(fuzz_amqp_door, "run_round", lambda seed, _count, _cases: 1 // (seed - 307))
    with pytest.raises(RuntimeError, match="round of seed 307"):
        fuzz_amqp_door.FUZZ.run_mutants(1_000, 7)
