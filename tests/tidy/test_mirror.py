"""A test file for each source file, in the same place."""

from __future__ import annotations

from pathlib import PurePath

from tests.support.sources import PRODUCT_SOURCES, ROOT

# Each with its reason.
WITHOUT_TESTS = {
    "core/record_journal.py",  # what a journal must be able to do, for the type checker only
    "gateway/amqp/method_answer.py",  # four fields; the tests of declaring and binding read them as answers
    "gateway/amqp/queue_ties.py",  # as that, of a queue's consumers and surroundings
    "core/schedule/timer_broker.py",  # as that, of the broker that a timer stands on
    "core/stage.py",  # names; those that tell a stage have the tests
    "gateway/version.py",  # one constant
    "gateway/settings/way_names.py",  # constants
    "gateway/admin/schemas.py",  # the shapes of answers; test_api.py reads them
    "gateway/admin/management/names.py",  # constants
    "gateway/commands/options.py",  # how options are called; the tests of each command use them
    "gateway/commands/bench/peers.py",  # what those of each door have in common; their tests run it
    "gateway/commands/bench/plan.py",  # as options say it
    "gateway/commands/doors/traffic.py",  # what links give and take; those of each door use them
    "lmq/pytest_plugin.py",  # two fixtures; test_testing.py has a project use them
    "gateway/__main__.py",  # one call; every test that starts a gateway goes through it
}


def _tests_of(path):
    source = PurePath(path)
    return ROOT / "tests" / source.parent / f"test_{source.name}"


def test_each_source_file_has_its_tests():
    sources = [path for path in PRODUCT_SOURCES if not path.endswith("__init__.py")]
    assert {path for path in sources if not _tests_of(path).exists()} == WITHOUT_TESTS


def test_packages_hold_a_docstring_only():
    speaking = {"lmq/__init__.py", "spark_analytics/__init__.py"}  # they re-export their public names
    for path in PRODUCT_SOURCES:
        if path.endswith("__init__.py") and path not in speaking:
            text = (ROOT / path).read_text().strip()
            assert text.startswith('"""'), path
            assert text.endswith('"""'), path


def test_no_module_is_a_drawer_for_odds_and_ends():
    drawers = {"utils", "util", "common", "base", "helpers", "helper", "misc"}
    assert not [path for path in PRODUCT_SOURCES if drawers & {*PurePath(path).parts, PurePath(path).stem}]
