from __future__ import annotations

import os

import pytest

from tests.conformance.mqtt.sides import Side


@pytest.fixture
def transport(request):
    """What clients come in by: as the option says."""
    return request.config.getoption("transport")


@pytest.fixture
def side(request, tmp_path, monkeypatch, transport, engine_maker):
    """A door with clients of one version, which `keeps` names; no power is cut here, so no test waits for the disk."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda _fd: None)
    side = Side(request.param, tmp_path / "data", transport, engine_maker)
    yield side
    side.close()
