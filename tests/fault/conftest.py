"""What tests of full disks share, and tests of kills."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess

import pytest

MIB = 1 << 20
DISK_BYTES = 64 * MIB
BALLAST_BYTES = 16 * MIB


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, of 64 MiB, a quarter of them taken by the file `ballast`."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        (folder / "ballast").write_bytes(bytes(BALLAST_BYTES))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def leaves_nothing():
    """What a client left in cycles, when its peer was killed, ends with its own test."""
    yield
    gc.collect()
