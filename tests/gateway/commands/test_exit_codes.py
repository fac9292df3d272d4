"""Each class of exit codes, as docs/operations.md has them."""

from __future__ import annotations

import re
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gateway.commands import status
from tests.support.commands import at, call_lmq, started_lmq
from tests.support.sources import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def answering():
    """Return the address of a server that answers with the status that is its path's last part."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(codes[0])
            self.end_headers()

        def do_DELETE(self):
            self.do_GET()

        def log_message(self, *_):
            pass

    codes = [200]
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}", codes
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("answer", "code"), [(400, 2), (401, 5), (403, 5), (404, 4), (405, 2), (409, 7), (500, 7), (503, 7)]
)
def test_what_the_gateway_answers_is_a_class(answering, answer, code):
    admin, codes = answering
    codes[0] = answer
    assert call_lmq("queue", "purge", "q", "--admin", admin).exit_code == code


def test_other_classes(running, monkeypatch):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    assert call_lmq("status", *admin).exit_code == 0
    assert call_lmq("status", "--bogus").exit_code == 2
    assert call_lmq("bogus").exit_code == 2
    assert call_lmq("queues", "list", "--limit", "many").exit_code == 2
    assert call_lmq("publish", "nobody", "x", *at(running, "amqp")).exit_code == 3
    assert call_lmq("sessions", "show", "nobody", *admin).exit_code == 4
    assert call_lmq("status", "--user", "guest", "--password", "wrong", *admin).exit_code == 5
    assert call_lmq("status", "--admin", "127.0.0.1:1").exit_code == 6
    assert call_lmq("status", "--admin", "http://").exit_code == 2
    monkeypatch.setattr(status, "facts_of", lambda _: 1 / 0)
    assert call_lmq("status", *admin).exit_code == 1


def test_ctrl_c_while_publishing(running):
    with started_lmq("publish", "stopped", "--lines", *at(running, "mqtt")) as process:
        process.stdin.write("one\n")
        process.stdin.flush()
        came = call_lmq("subscribe", "stopped", "--from", "first", "--count", "1", *at(running, "mqtt"))
        assert came.stdout == "stopped one\n"
        process.send_signal(signal.SIGINT)  # while it waits for the next line
        assert process.wait(10) == 130
        assert "Traceback" not in process.stderr.read()


def test_the_table_of_the_documents_has_all_of_them():
    text = (ROOT / "docs/operations.md").read_text()
    table = text[text.index("### Exit codes") : text.index("### Publish, subscribe, consume")]
    assert re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE) == ["0", "1", "2", "3", "4", "5", "6", "7", "130"]
