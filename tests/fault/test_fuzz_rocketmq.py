from __future__ import annotations

import pytest

import gateway.rocketmq.codec
from tests.fault.fuzz_rocketmq import FUZZ

IS_COMPILED = not str(gateway.rocketmq.codec.__file__).endswith(".py")


@pytest.mark.parametrize("case", FUZZ.read_corpus(), ids=lambda case: case.hex()[:24])
def test_kept_case_is_taken_or_refused_the_same_however_it_is_cut(case):
    for cut in (0, 1, 2, 3, 7, 31):
        FUZZ.run_case(case[:1] + bytes((cut,)) + case[2:])


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_kept_cases_are_taken_or_refused_too(seed):
    FUZZ.run_mutants(250, seed)


@pytest.mark.skipif(IS_COMPILED, reason="compiled functions are not Python's")
def test_a_guided_run_sees_the_whole_decoder():
    names = {function.__qualname__ for function in FUZZ.functions()}
    assert {"Connection.receive_data", "read_header", "read_sends", "SqlFilter.wants", "cut_frames"} <= names
