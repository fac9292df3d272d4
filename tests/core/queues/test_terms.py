"""What several sources say of a queue is one value."""

from __future__ import annotations

from core.queues.terms import NO_LIMIT, QueueTerms, resolve_terms


def test_a_queue_that_nobody_speaks_of_has_no_limits():
    assert resolve_terms() == resolve_terms({}) == QueueTerms(NO_LIMIT, NO_LIMIT)


def test_of_numbers_the_least_holds_whoever_says_it():
    assert resolve_terms({"message-ttl": 500, "expires": 9}, {"message-ttl": 0}) == QueueTerms(0, 9)
    assert resolve_terms({"message-ttl": 500}, {"message-ttl": 700, "expires": 1_000}) == QueueTerms(500, 1_000)


def test_a_negative_limit_of_deliveries_is_none_and_any_other_is_stricter():
    limit = lambda *told: resolve_terms(*({"delivery-limit": one} for one in told)).delivery_limit  # noqa: E731
    assert [limit(-1), limit(-5, -1), limit(-1, 7), limit(7, -1), limit(7, 3, -1), limit(0, 3)] == [-1, -1, 7, 7, 3, 0]


def test_of_texts_the_first_holds():
    told = {"dead-letter-exchange": "", "message-ttl": 5}, {"dead-letter-exchange": "x", "dead-letter-routing-key": "k"}
    assert resolve_terms(*told) == QueueTerms(5, NO_LIMIT, "", "k")


def test_a_full_queue_refuses_where_it_is_told_to():
    assert resolve_terms({"max-length": 3, "overflow": "reject-publish"}) == QueueTerms(length_max=3, is_refusing=True)
    assert not resolve_terms({"max-length": 3, "overflow": "drop-head"}).is_refusing


def test_what_is_refused_becomes_dead_letters_where_there_is_an_exchange_for_them():
    told = {"overflow": "reject-publish-dlx"}
    assert resolve_terms(told)[5:7] == (True, False)
    assert resolve_terms({**told, "dead-letter-exchange": ""})[5:7] == (True, True)
