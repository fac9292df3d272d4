"""The C of the CRC, compiled by itself, by each compiler that is found."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.sources import ROOT

CHECK = ROOT / "tests" / "core" / "crc32_check.c"
STAND_IN = ROOT / "tests" / "core" / "crc32_arm"  # an <arm_acle.h> for machines without these instructions


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


@pytest.mark.parametrize(
    "options",
    [["-DSTAND_IN_FOR_ARM=128"], ["-DSTAND_IN_FOR_ARM=0"], ["-DSTAND_IN_FOR_ANY"]],
    ids=["with-instructions", "arm-without", "any-processor"],
)
def test_what_other_processors_run_is_right_with_their_instructions_stood_in_for(options, tmp_path):
    program = tmp_path / "check"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", *options, f"-I{STAND_IN}", f"-I{ROOT}"]
    subprocess.run([*command, str(CHECK), "-o", str(program)], check=True)
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    said = "right\n" if options != ["-DSTAND_IN_FOR_ARM=128"] else "right, by instructions\n"
    assert (run.returncode, run.stdout) == (0, said), run.stderr
