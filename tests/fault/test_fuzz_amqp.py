from __future__ import annotations

import random

import pytest

import gateway.amqp.codec
from tests.fault.fuzz_amqp import FUZZ
from tests.fault.fuzzing import mutate

IS_COMPILED = not str(gateway.amqp.codec.__file__).endswith(".py")


@pytest.mark.parametrize("case", FUZZ.read_corpus(), ids=lambda case: case.hex()[:24])
def test_kept_case_is_taken_or_refused_the_same_however_it_is_cut(case):
    for cut in (1, 3, 31):
        FUZZ.run_case(case[:1] + bytes((cut,)) + case[2:])


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_kept_cases_are_taken_or_refused_too(seed):
    FUZZ.run_mutants(100, seed)


def test_failing_case_is_told_so_that_it_can_be_kept(monkeypatch):
    monkeypatch.setattr(FUZZ, "run_case", lambda case: 1 // 0)
    with pytest.raises(RuntimeError, match=r"case 0 of seed 1, to be kept in amqp_cases\.txt: [0-9a-f]+"):
        FUZZ.run_mutants(1, 1)


def test_seed_gives_the_same_cases_again():
    cases = FUZZ.read_corpus()
    assert mutate(random.Random(5), cases) == mutate(random.Random(5), cases)


@pytest.mark.skipif(IS_COMPILED, reason="compiled functions are not Python's")
def test_a_guided_run_sees_the_whole_decoder():
    names = {function.__qualname__ for function in FUZZ.functions()}
    assert {
        "AmqpConnection.receive_data",
        "check_table",
        "Channel.take_header",
        "UnackedRing.cut_settles",
        "BlockReader.read",
    } <= names
