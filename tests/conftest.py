"""What holds for all tests: which build runs, where files are, and how long a test may take."""

from __future__ import annotations

import gc
import inspect
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from gateway.telemetry.manager import Telemetry
from tests.support import engines
from tests.support.build import IS_COMPILED
from tests.support.carried import TRANSPORTS
from tests.support.files import memory_folder
from tests.support.heap import leave_alone_what_stays
from tests.support.waiting import limited

TEST_S_MAX = 120
FILES_MAX = 300  # open in this process: paho waits by select(), which takes numbers below 1,024 only
SPARK_TEST_S_MAX = 300  # a JVM on a machine that does other things too
TESTS = Path(__file__).parent
ON_DISK = tuple(
    TESTS / name for name in ("core/store", "core/test_crc32.py", "fault", "integration", "spark_analytics", "tidy")
)
# `make test-pure` leaves out what would come to the same compiled, docs/testing.md: rules about the text of the source,
# tools that measure, drawings and pages of reports, and most programs at the doors of a gateway that is a process of
# its own, killed, refused or not.
IN_ONE_BUILD = (
    *(TESTS / name for name in ("benchmarks", "fault", "integration", "tidy")),
    *(TESTS / name for name in ("gateway/commands/test_serve.py", "lmq/test_testing.py")),
    *(TESTS / "spark_analytics/report" / name for name in ("test_page.py", "test_plots.py")),
)
IN_BOTH_BUILDS = {
    *(TESTS / "integration" / f"test_{name}.py" for name in ("every_door", "mqtt_clients", "streams")),
    # Their gateways are in this process, and stand on the late engine there.
    *(TESTS / "integration" / f"test_{name}.py" for name in ("home_automation", "logins", "low_disk")),
    *(TESTS / "integration" / f"test_amqp_clients{name}.py" for name in ("", "_aio_pika", "_pika")),
    *(TESTS / "fault" / f"test_{name}.py" for name in ("kill", "any_bytes", "fuzz", "torn_write", "older_folder")),
    *(TESTS / "fault" / f"test_{name}.py" for name in ("folder_without_row_versions", "power_cut_mqtt")),
}
# What a kill or a power cut leaves are files of the embedded engine, which the late one has under it unchanged.
OF_FILES = TESTS / "fault"
IN_MEMORY = {TESTS / "core/store/test_losses.py"}  # opens copies of a folder for each step that a process can die at


# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("lmq", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lmq")


def pytest_addoption(parser):
    """Let the clauses of MQTT be held over another transport than TCP, and doors stand on another engine."""
    parser.addoption("--transport", choices=TRANSPORTS, default="tcp", help="of clients in tests/conformance/mqtt")
    parser.addoption("--engine", choices=engines.MAKERS, default=engines.ENGINE_OF_BUILD, help="where none is named")


def pytest_configure(config):
    """Refuse to test the compiled build where the uncompiled one is meant, or the other way round."""
    wanted = os.environ.get("LMQ_COMPILE")
    if wanted == "none" and IS_COMPILED:
        raise pytest.UsageError("LMQ_COMPILE=none, but core.message is compiled: run `make test-pure`")
    if wanted == "all" and not IS_COMPILED:  # an earlier build failed, and went on without
        raise pytest.UsageError("LMQ_COMPILE=all, but core.message is not compiled: run `make clean`, then again")
    engines.STANDING.name = config.getoption("engine")
    memory = memory_folder()
    if memory is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    gc.disable()  # until all tests are collected: it would go through all of them again and again


def pytest_collection_finish(session):
    """Let the collector of cycles work again, on what the tests make."""
    gc.enable()
    leave_alone_what_stays()


@pytest.fixture(scope="session", autouse=True)
def _engines_of_gateways():
    """Have gateways that start in this process stand on the engine that `engines.find_maker` gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Telemetry, "open_engine", engines.open_engine)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Tell helpers that open doors which test it is for."""
    engines.begin(item)


@pytest.fixture
def tmp_path(request, tmp_path):
    """Give a folder of the test's own: on the disk where files or programs are what is tested, else in memory."""
    if request.path in IN_MEMORY or not any(request.path.is_relative_to(folder) for folder in ON_DISK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="lmq-test-") as folder:
        yield Path(folder)


def pytest_asyncio_loop_factories():
    """Run every asyncio test on the loop that the product runs on."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_runtest_teardown(item, nextitem):
    """Let go of the doors of a module that are in cycles, with the files that they map, where they are many."""
    is_last = nextitem is None or nextitem.path != item.path
    if is_last and sum(1 for _ in Path("/proc/self/fd").iterdir()) > FILES_MAX:
        gc.collect()


def pytest_report_header():
    """Say which build is tested."""
    return f"lmq-gateway: {'compiled' if IS_COMPILED else 'uncompiled'}"


def pytest_collection_modifyitems(config, items):
    """Skip what needs the compiled modules where there are none; let no test hang, unless `--timeout` says how long."""
    is_limited = config.getoption("timeout", None) is not None
    for item in items:
        if item.path.is_relative_to(OF_FILES):
            item.add_marker(pytest.mark.at_once(reason="looks into the files of the embedded engine"))
        if not IS_COMPILED and item.get_closest_marker("compiled"):
            item.add_marker(pytest.mark.skip(reason="needs the compiled modules"))
        if os.environ.get("LMQ_COMPILE") == "none" and is_for_one_build(item):
            item.add_marker(pytest.mark.skip(reason="is run in the compiled build"))
        if not is_limited and not item.get_closest_marker("timeout"):
            limit_s = SPARK_TEST_S_MAX if item.get_closest_marker("spark") else TEST_S_MAX
            item.add_marker(pytest.mark.timeout(limit_s))
            if inspect.iscoroutinefunction(item.obj):
                item.obj = limited(item.obj, limit_s)


def is_for_one_build(item):
    """Return whether a test would come to the same in both builds."""
    if item.path in IN_BOTH_BUILDS:
        return False
    return any(item.path.is_relative_to(folder) for folder in IN_ONE_BUILD) or item.get_closest_marker("spark")
