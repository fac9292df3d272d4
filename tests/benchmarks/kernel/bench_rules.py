"""Print what 10,000 rules cost a publish: python tests/benchmarks/kernel/bench_rules.py."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from core.cache_budget import CacheBudget
from gateway.auth.rule import make_rules
from gateway.auth.rule_book import RuleBook
from gateway.auth.rule_draft import RuleDraft
from gateway.settings.rules import RuleSettings

RULE_COUNT = 10_000
ROUNDS = 20_000


def make_settings(number):
    """Return one rule of the shapes that fleets have."""
    topics = (f"plant/{number}/+/temp", f"plant/{number}/alarm/#")
    return RuleSettings(permit="allow" if number % 3 else "deny", topics=topics, names=(f"plant-{number}-*",))


def say(name, seconds, count):
    sys.stdout.write(f"{name:<64}{seconds / count * 1e9:>12,.0f} ns\n")


def time_once(name, call):
    start = time.thread_time()
    found = call()
    sys.stdout.write(f"{name:<64}{(time.thread_time() - start) * 1e3:>12,.1f} ms\n")
    return found


def time_topics(name, may, topics):
    start = time.thread_time()
    for topic in topics:
        may.may_publish(topic)
    say(name, time.thread_time() - start, len(topics))


def make_permissions(rules):
    book = RuleBook(CacheBudget())
    book.change(rules, {}, allows=True)
    return book, book.make("", client="c", host="192.0.2.1", door="mqtt")


def main():
    """Print all figures."""
    said = [make_settings(number) for number in range(RULE_COUNT)]
    rules = time_once("make 10,000 rules", lambda: make_rules(said, "auth.rules"))
    _, free = make_permissions([])
    book, may = make_permissions(rules)
    time_once("the first publish after that", lambda: may.may_publish(b"plant/1/x/temp"))
    time_once("the first subscription", lambda: may.may_subscribe(b"plant/1/x/temp"))
    known = [b"plant/1/x/temp"] * ROUNDS
    time_topics("a publish to a known topic, no rules", free, known)
    time_topics("a publish to a known topic, 10,000 rules", may, known)
    time_topics("a publish to a new topic, 10,000 rules", may, [b"plant/%d/y/temp" % i for i in range(ROUNDS)])
    fewer = [*said[: RULE_COUNT // 2], *said[RULE_COUNT // 2 + 1 :]]
    draft = RuleDraft([(fewer, "auth.rules[{}]".format)], known=rules)
    changed = time_once("make them without one", draft.make)
    time_once("go by those", lambda: book.change(changed, {}, allows=True))


if __name__ == "__main__":
    main()
