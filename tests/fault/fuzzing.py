"""What a run of any bytes is: kept cases, mutations of them, a watch over hangs and memory, atheris if installed."""

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

DATA = Path(__file__).parents[1] / "data"
CASE_BYTES_MAX = 4_096
HANG_S = 20  # of the processor's time for STEP cases, which take about a second
STUCK_S = 600  # by the clock: a busy machine may leave a process without its turn for long
STEP = 2_000
GROWTH_KB_MAX = 64 * 1024  # after the first steps


class Fuzz:
    """Any bytes at one decoder.

    Args:
        corpus: The name of the file with the kept cases, one a line, in hexadecimal.
        run_case: Checks one case, and raises where it fails; the first two bytes of a case say how it is fed.
        modules: The names of the decoder's modules.
    """

    cases = 10_000_000  # where nobody says how many
    is_guided = True  # by atheris, where it is installed

    def __init__(self, corpus, run_case, modules):
        self.corpus = DATA / corpus
        self.run_case = run_case
        self.modules = modules

    def read_corpus(self):
        """Return the kept cases."""
        return [bytes.fromhex(line) for line in self.corpus.read_text().splitlines() if line and line[0] != "#"]

    def run_mutants(self, count, seed, note=None):
        """Run so many mutations of the kept cases.

        Raises:
            RuntimeError: A case failed; the text is the case, to be kept.
        """
        rng = random.Random(seed)
        cases = self.read_corpus()
        for number in range(count):
            if note is not None and number % STEP == 0:
                note(number)
            case = mutate(rng, cases)
            try:
                self.run_case(case)
            except Exception as error:
                kept = f"to be kept in {self.corpus.name}: {case.hex()}"
                raise RuntimeError(f"case {number} of seed {seed}, {kept}") from error

    def functions(self):
        """Return the functions of the decoder that are Python's: all of them in the uncompiled sources."""
        found = []
        for name in self.modules:
            module = importlib.import_module(name)
            own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
            members = [part for one in own if isinstance(one, type) for part in vars(one).values()]
            bare = [getattr(one, "fget", None) or getattr(one, "__func__", one) for one in [*own, *members]]
            found += [one for one in bare if isinstance(one, FunctionType)]
        return found

    def _run_guided(self, count):
        """Run so many cases that atheris makes of the kept ones, by what they reach in the decoder."""
        import atheris  # noqa: PLC0415

        for function in self.functions():
            atheris.instrument_func(function)
        with tempfile.TemporaryDirectory() as folder:
            for number, case in enumerate(self.read_corpus()):
                (Path(folder) / str(number)).write_bytes(case)
            limits = [f"-runs={count}", f"-max_len={CASE_BYTES_MAX}", f"-timeout={HANG_S}"]
            atheris.Setup([sys.argv[0], *limits, folder], self.run_case)
            atheris.Fuzz()

    def main(self):
        """Run as many cases as the command line asks for."""
        parser = argparse.ArgumentParser()
        parser.add_argument("--cases", type=int, default=self.cases)
        parser.add_argument("--seed", type=int, default=int(time.time()))
        wanted = parser.parse_args()
        if self.is_guided and find_spec("atheris") is not None:
            self._run_guided(wanted.cases)
            return
        _say(f"{self.corpus.stem}: seed {wanted.seed}")
        self.run_mutants(wanted.cases, wanted.seed, _Watch())
        _watch_time(0, 0)
        _say(f"{wanted.cases} cases, none failed")


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


class _Watch:
    """Ends the process where cases hang or memory grows; says how far it is."""

    def __init__(self):
        self.begun = time.monotonic()
        self.peak_kb = 0

    def __call__(self, number):
        _watch_time(HANG_S, STUCK_S)
        now_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if number <= 10 * STEP:
            self.peak_kb = now_kb
        elif now_kb - self.peak_kb > GROWTH_KB_MAX:
            raise RuntimeError(f"memory grew from {self.peak_kb} to {now_kb} KB by case {number}")
        if number % (100 * STEP) == 0:
            rate = number / max(time.monotonic() - self.begun, 0.001)
            _say(f"{number} cases, {rate:.0f} a second, {now_kb} KB")


def _watch_time(busy_s, stuck_s):
    """Have a signal end the process after so much time of the processor, or by the clock; 0: no more."""
    signal.setitimer(signal.ITIMER_PROF, busy_s)
    signal.alarm(stuck_s)


def _say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
