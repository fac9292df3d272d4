from __future__ import annotations

import pytest

from gateway.amqp.access import EXCHANGE, QUEUE, Access
from gateway.amqp.errors import AmqpError
from gateway.auth.credentials import Identity
from gateway.auth.permissions import ALL, Permissions
from tests.gateway.auth.test_permissions import make_book, of


def text_of(do):
    with pytest.raises(AmqpError) as caught:
        do()
    assert caught.value.code == 403
    assert caught.value.denied
    return caught.value.reply_text.removeprefix("ACCESS_REFUSED - ")


def test_refusals_are_in_rabbitmqs_words():
    nobody = Access("v", Identity("bob", Permissions(publish=False, subscribe=False, configure=False)))
    assert text_of(lambda: nobody.check_configure(QUEUE, "q")) == (
        "configure access to queue 'q' in vhost 'v' refused for user 'bob'"
    )
    assert (
        text_of(lambda: nobody.check_read(QUEUE, "q")) == "read access to queue 'q' in vhost 'v' refused for user 'bob'"
    )
    assert text_of(lambda: nobody.check_bind(EXCHANGE, "e", "s", "k", is_keyed=False)) == (
        "write access to exchange 'e' in vhost 'v' refused for user 'bob'"
    )


def test_topics_are_named_where_they_are_refused():
    access = Access("/", Identity("bob", of(make_book({"permit": "deny", "topics": ["secret/#"]}))))
    where = "in exchange 'amq.topic' in vhost '/' refused for user 'bob'"
    assert (
        text_of(lambda: access.check_bind(QUEUE, "q", "amq.topic", "#", is_keyed=False))
        == f"read access to topic '#' {where}"
    )
    lead = text_of(lambda: access.check_lead(QUEUE, "q", "amq.topic", "secret.a"))
    assert lead == f"write access to topic 'secret.a' {where}"
    access.check_lead(QUEUE, "q", "amq.topic", "open.a")
    access.check_lead(QUEUE, "q", "amq.topic", "")  # reaches no device
    access.check_bind(QUEUE, "q", "amq.topic", "open.#", is_keyed=False)
    access.check_bind(QUEUE, "q", "amq.direct", "secret.a", is_keyed=False)


def test_who_may_do_all_is_asked_nothing_more():
    access = Access("/", Identity("", ALL))
    access.check_bind(EXCHANGE, "amq.topic", "e", "", is_keyed=False)
    access.check_lead(EXCHANGE, "e", "amq.topic")


def test_topics_are_not_asked_for_where_amq_topic_has_none():
    bob = Identity("bob", of(make_book({"permit": "deny", "topics": ["#"]})))
    access = Access("v", bob, has_topic_space=False)
    access.check_bind(QUEUE, "q", "amq.topic", "#", is_keyed=True)
    access.check_bind(EXCHANGE, "amq.topic", "e", "", is_keyed=False)
    access.check_lead(QUEUE, "q", "amq.topic", "secret.a")
