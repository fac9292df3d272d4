from __future__ import annotations

from functools import cache

from gateway.settings.doc import settings_page


@cache
def _page():
    """Make it once: it takes a second."""
    return settings_page()


def _row(name):
    (row,) = [line for line in _page().splitlines() if line.startswith(f"| `{name}` |")]
    return row


def test_row_has_default_values_and_meaning():
    assert _row("mqtt.listen").startswith(
        "| `mqtt.listen` | `127.0.0.1:1883` | text or list | the next start | HOST:PORT"
    )
    assert "`sync` or `async`" in _row("store.flush.mode")
    assert "number, at least 1, at most 60000" in _row("store.flush.interval_ms")
    assert "| `true` | true or false | at once |" in _row("auth.mqtt_anonymous")


def test_value_that_may_be_absent_says_so():
    assert "| none | number, at least 1048576, at most 9007199254740991 or none |" in _row("store.retention.bytes_max")


def test_every_number_has_an_upper_bound():
    rows = [line.split(" | ") for line in _page().splitlines() if line.startswith("| `")]
    numbers = [(row[0], row[2]) for row in rows if "number" in row[2]]
    assert len(numbers) > 100
    assert [row for row in numbers if "at most" not in row[1]] == []


def test_row_says_what_another_value_is_for_after_a_sighup():
    assert "| the next start | HOST:PORT" in _row("mqtt.listen")
    assert "| new connections |" in _row("mqtt.packet_bytes_max")
    assert "| at once |" in _row("auth.users.NAME.may_publish")


def test_users_have_a_table_of_their_own():
    assert "the environment variable" in _row("auth.users.NAME.password_env")


def test_addresses_and_their_tls_have_tables_of_their_own():
    assert _row("listen.address").startswith("| `listen.address` | required | text | the next start | HOST:PORT")
    assert _row("listen.tls").startswith("| `listen.tls` | none | table or none | the next start | ")
    assert _row("listen.tls.client_certificate").split("|")[2:4] == [" `required` ", " `required` or `optional` "]
