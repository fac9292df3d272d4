"""The container image has what settings may ask for."""

from __future__ import annotations

import re
import tomllib

from tests.support.sources import ROOT

ELSEWHERE = {"spark", "demo", "test", "check"}  # of Spark's own image, and of developers


def test_the_image_has_every_extra_of_a_gateway():
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    (installed,) = re.findall(r"'\.\[([a-z0-9,]+)\]'", (ROOT / "Dockerfile").read_text())
    assert set(installed.split(",")) == extras - ELSEWHERE
