from __future__ import annotations

import json

import pytest

from gateway.commands.definitions import told
from tests.support.commands import call_lmq, check_told, told_json


def test_told_is_what_was_made_and_what_was_not():
    assert told({"imported": {"vhosts": 2, "queues": 7}, "not_imported": ["user 'bob': why"]}) == [
        "imported: 2 vhosts, 7 queues",
        "not imported: user 'bob': why",
    ]
    assert told({"imported": {}, "not_imported": []}) == ["imported: nothing"]


@pytest.mark.slow
def test_definitions_are_imported_and_exported(running, tmp_path):
    admin = ("--admin", f"127.0.0.1:{running.port('admin')}")
    file, written = tmp_path / "in.json", tmp_path / "out.json"
    queue = {"name": "imported", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 7}}
    queue["type"] = "classic"
    file.write_text(json.dumps({"queues": [queue], "users": [{"name": "bob"}]}))
    result = call_lmq("definitions", "import", str(file), "--vhost", "/", *admin)
    assert result.stdout.splitlines()[0] == "imported: 1 queues"
    assert result.stdout.splitlines()[1].startswith("not imported: user 'bob': ")
    check_told(result, "^lmq: imported 1, not imported 1$", code=3)
    file.write_text(json.dumps({"queues": [queue]}))
    result = call_lmq("definitions", "import", str(file), "--vhost", "/", *admin)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "imported: 1 queues\n", "")
    result = call_lmq("definitions", "import", str(file), "--vhost", "/", "--json", *admin)
    assert json.loads(result.stdout) == {"imported": {"queues": 1}, "not_imported": []}
    told_of = told_json("definitions", "export", str(written), "--vhost", "/", *admin)
    assert told_of == {"written": str(written)}
    assert queue in json.loads(written.read_text())["queues"]
    found = json.loads(call_lmq("definitions", "export", "-", "--json", *admin).stdout)
    assert {**queue, "vhost": "/"} in found["queues"]
    check_told(call_lmq("definitions", "import", str(tmp_path / "none"), *admin), "^lmq: cannot read .*none")
    file.write_text("{")
    check_told(call_lmq("definitions", "import", str(file), *admin), "is not JSON")
    file.write_text('{"queues": [{"name": "q", "vhost": "none"}]}')
    check_told(call_lmq("definitions", "import", str(file), *admin), "^lmq: queue 'q': no vhost 'none'$")
