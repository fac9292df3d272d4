"""Each normative statement of MQTT is in the list; what is said to be done is tested; the page shows the list."""

from __future__ import annotations

from collections import Counter

from tests.conformance.mqtt.clauses import STATUSES, clauses_page, find_tests, read_clauses
from tests.support.sources import ROOT

CLAUSES = read_clauses()
TESTED = find_tests()
CHAPTERS = {  # how many each standard has
    "3.1.1": {"1": 3, "2": 9, "3": 95, "4": 26, "6": 4, "7": 4},
    "5.0": {"1": 5, "2": 7, "3": 175, "4": 60, "6": 4},
}


def test_page_is_what_the_list_says():
    made = "python -m tests.conformance.mqtt.clauses > docs/protocols/mqtt-clauses.md"
    assert (ROOT / "docs/protocols/mqtt-clauses.md").read_text() == clauses_page(), f"make it anew: {made}"


def test_clause_that_is_done_has_a_test():
    missing = [
        f"{one.version} MQTT-{one.number}"
        for one in CLAUSES
        if one.status in {"done", "otherwise"} and (one.version, one.number) not in TESTED
    ]
    assert not missing


def test_clause_of_a_test_is_in_the_list_and_is_not_the_clients():
    held = {(one.version, one.number) for one in CLAUSES if one.status != "client"}
    assert not {key: tests for key, tests in TESTED.items() if key not in held}


def test_what_is_not_simply_done_says_why_or_how():
    assert not [one for one in CLAUSES if one.status not in STATUSES or not one.words]
    assert not [one for one in CLAUSES if one.status in {"otherwise", "refused"} and not one.note]


def test_numbers_have_no_gaps():
    for version in ("3.1.1", "5.0"):
        last: Counter[str] = Counter()
        for one in CLAUSES:
            if one.version == version:
                section, _, number = one.number.rpartition("-")
                if (version, one.number) == ("5.0", "2.2.1-2"):
                    last[section] += 1  # the standard has no 2.2.1-1
                last[section] += 1
                assert int(number) == last[section], one


def test_no_clause_of_a_chapter_is_left_out():
    for version, counts in CHAPTERS.items():
        assert Counter(one.number[0] for one in CLAUSES if one.version == version) == counts
