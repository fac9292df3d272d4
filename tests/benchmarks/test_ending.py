from __future__ import annotations

import subprocess
import sys

from tests.support.sources import ROOT

SWALLOWED = """
import os, signal
from tests.benchmarks.ending import Ending
ending = Ending("bench")
ending.check()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except SystemExit:
    print("taken for a callback's failure", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
ending.check()
print("went on")
"""


def test_a_bench_that_is_told_to_ends_also_where_its_loop_swallowed_that():
    done = subprocess.run([sys.executable, "-c", SWALLOWED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "taken for a callback's failure\n", "bench: ended\n")
