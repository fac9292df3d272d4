from __future__ import annotations

from gateway.admin.management.declared import BindingBody, ExchangeBody, QueueBody


def test_what_is_not_said_is_as_in_rabbitmqs_api():
    assert QueueBody.model_validate({"arguments": [], "durable": "true", "node": "x"}) == QueueBody(durable=True)
    assert ExchangeBody.model_validate({"arguments": None}).type == "direct"
    assert BindingBody.model_validate({}) == BindingBody(routing_key="", arguments={})
