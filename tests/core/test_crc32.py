"""The C of the CRC, compiled by itself, by each compiler that is found."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.sources import ROOT

CHECK = ROOT / "tests" / "core" / "crc32_check.c"


@pytest.mark.parametrize(
    ("compiler", "runner"),
    [(["cc"], []), (["clang"], []), (["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64"])],
    ids=["cc", "clang", "arm"],
)
@pytest.mark.parametrize("optimisation", ["-O0", "-O2"])
def test_each_form_of_the_crc_is_what_one_bit_at_a_time_gives(compiler, runner, optimisation, tmp_path):
    for needed in (compiler[0], *runner):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not here")
    program = tmp_path / "check"
    flags = [optimisation, "-Wall", "-Wextra", "-Werror", f"-I{ROOT}"]
    subprocess.run([*compiler, *flags, str(CHECK), "-o", str(program)], check=True)
    run = subprocess.run([*runner, str(program)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "right\n"), run.stderr
