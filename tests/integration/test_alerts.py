"""Each alert of deploy/ fires on what it is for, by promtool, and none on a gateway that is well, also a live one."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time

import httpx
import pytest

from tests.support.gateway import GatewayProcess
from tests.support.sources import ROOT

ALERTS = ROOT / "deploy/prometheus/alerts.yml"
HERE = 'job="lmq",instance="a:15672"'
BUCKETS = ("0.1", "1", "5", "10", "+Inf")
WELL = {  # what every gateway tells, a sample a minute
    "up{%s}": "1x90",
    "lmq_up{%s}": "1x90",
    "process_start_time_seconds{%s}": "0x90",
    "lmq_disk_low{%s}": "0x90",
    "lmq_disk_free_bytes{%s}": "9000000000x90",
    "lmq_disk_free_bytes_min{%s}": "200000000x90",
    'lmq_deepest_queue_messages{%s,queue="q",vhost="/"}': "20000x90",
    'lmq_oldest_queue_message_age_seconds{%s,queue="q",vhost="/"}': "60x90",
    'lmq_deepest_session_messages{%s,client="c"}': "20000x90",
    'lmq_lagging_group_messages{%s,door="rocketmq",group="g"}': "20000-10x90",
    'lmq_dead_letters_total{%s,door="amqp",reason="rejected"}': "0x90",
    'lmq_redelivered_total{%s,door="mqtt"}': "0+60x90",
    'lmq_messages_out_total{%s,door="mqtt"}': "0+6000x90",
    'lmq_redelivering_queue_redelivered_total{%s,queue="q",vhost="/"}': "0+600x90",
    'lmq_redelivering_queue_messages_total{%s,queue="q",vhost="/"}': "0+60000x90",
    'lmq_redelivering_group_redelivered_total{%s,door="mqtt",group="g",queue="t/#"}': "0+600x90",
    'lmq_redelivering_group_messages_total{%s,door="mqtt",group="g",queue="t/#"}': "0+60000x90",
    'lmq_dropped_total{%s,door="amqp",reason="maxlen"}': "5x90",
    'lmq_dropped_total{%s,door="amqp",reason="expired"}': "0+60x90",
    'lmq_refused_total{%s,door="mqtt",reason="publish_not_authorized"}': "7x90",
    'lmq_refused_total{%s,door="amqp",reason="not_found"}': "0+60x90",
    "lmq_transaction_checks_unasked_total{%s}": "3x90",
    'lmq_transactions_ended_total{%s,how="given_up"}': "1x90",
    'lmq_transactions_ended_total{%s,how="rollback"}': "0+60x90",
    'lmq_logins_total{%s,door="mqtt",outcome="wrong"}': "0+6x90",
    "lmq_sync_seconds_sum{%s}": "0+1x90",
    "lmq_sync_seconds_count{%s}": "0+1000x90",
    "lmq_loop_delay_seconds{%s}": "0.01x90",
    'lmq_alarm{%s,alarm="memory_low"}': "0x90",
    "lmq_addresses_refused{%s}": "0x90",
    "lmq_newcomers_wait{%s}": "0x90",
    'lmq_connections{%s,door="mqtt"}': "10000x90",
    'lmq_connections_opened_total{%s,door="mqtt"}': "0+900x90",
    'lmq_bridge_connected{%s,bridge="cloud"}': "1x90",
    "lmq_records_damaged_total{%s}": "0x90",
    'lmq_certificate_expires_seconds{%s,address="a:8883"}': "9000000x90",
    **{f'lmq_delayed_lateness_seconds_bucket{{%s,le="{bound}"}}': "0+60x90" for bound in BUCKETS},
}
ILL = {
    "LmqDown": {"up{%s}": "1x70 0x20", "lmq_up{%s}": "1x70 stale"},
    "LmqRestarts": {"process_start_time_seconds{%s}": "0x80 4900x3 5150x6"},
    "LmqDiskLow": {"lmq_disk_low{%s}": "0x88 1x2"},
    "LmqDiskFillsUp": {"lmq_disk_free_bytes{%s}": "9000000000-50000000x90"},
    "LmqQueueGrows": {'lmq_deepest_queue_messages{%s,queue="q",vhost="/"}': "20000+10x90"},
    "LmqQueueStands": {'lmq_oldest_queue_message_age_seconds{%s,queue="q",vhost="/"}': "0+60x90"},
    "LmqSessionGrows": {'lmq_deepest_session_messages{%s,client="c"}': "20000+10x90"},
    "LmqGroupLags": {'lmq_lagging_group_messages{%s,door="rocketmq",group="g"}': "20000+10x90"},
    "LmqDeadLetters": {'lmq_dead_letters_total{%s,door="amqp",reason="rejected"}': "0x85 1x5"},
    "LmqRedeliveries": {'lmq_redelivered_total{%s,door="mqtt"}': "0+5000x90"},
    "LmqQueueRedelivers": {
        'lmq_redelivering_queue_redelivered_total{%s,queue="q",vhost="/"}': "0+600x90",
        'lmq_redelivering_queue_messages_total{%s,queue="q",vhost="/"}': "5000x90",
    },
    "LmqGroupRedelivers": {
        'lmq_redelivering_group_redelivered_total{%s,door="mqtt",group="g",queue="t/#"}': "0+600x90",
        'lmq_redelivering_group_messages_total{%s,door="mqtt",group="g",queue="t/#"}': "5000x90",
    },
    "LmqMessagesDropped": {'lmq_dropped_total{%s,door="amqp",reason="maxlen"}': "0+1x90"},
    "LmqRightsRefuse": {'lmq_refused_total{%s,door="mqtt",reason="publish_not_authorized"}': "0+60x90"},
    "LmqTransactionsStand": {"lmq_transaction_checks_unasked_total{%s}": "0x80 1x10"},
    "LmqLoginsFail": {'lmq_logins_total{%s,door="mqtt",outcome="wrong"}': "0+120x90"},
    "LmqTimedMessagesLate": {
        'lmq_delayed_lateness_seconds_bucket{%s,le="5"}': "0+10x90",
        'lmq_delayed_lateness_seconds_bucket{%s,le="1"}': "0+10x90",
        'lmq_delayed_lateness_seconds_bucket{%s,le="0.1"}': "0+10x90",
    },
    "LmqSyncSlow": {"lmq_sync_seconds_sum{%s}": "0+200x90"},
    "LmqLoopLate": {"lmq_loop_delay_seconds{%s}": "0.3x90"},
    "LmqMemoryLow": {'lmq_alarm{%s,alarm="memory_low"}': "0x88 1x2"},
    "LmqAddressesRefused": {"lmq_addresses_refused{%s}": "0x60 1 0 1x2 0 1x4 0 1x8 0 1x16"},  # twice as long each time
    "LmqConnectionsExhausted": {"lmq_newcomers_wait{%s}": "0x80 1x10"},
    "LmqConnectionChurn": {
        'lmq_connections_opened_total{%s,door="mqtt"}': "0+900x90",
        'lmq_connections{%s,door="mqtt"}': "30x90",
    },
    "LmqBridgeDown": {'lmq_bridge_connected{%s,bridge="cloud"}': "1x80 0x10"},
    "LmqDamage": {"lmq_records_damaged_total{%s}": "1x90", "process_start_time_seconds{%s}": "3000x90"},
    "LmqCertificateExpires": {'lmq_certificate_expires_seconds{%s,address="a:8883"}': "1000000x90"},
}


def _alerts():
    return re.findall(r"alert: (\w+)", ALERTS.read_text())


def test_there_is_an_illness_for_each_alert():
    assert sorted(ILL) == sorted(_alerts())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Debian's package prometheus has promtool")
@pytest.mark.parametrize("ill", [None, *ILL])
def test_an_alert_fires_on_what_it_is_for_and_no_other_does(tmp_path, ill):
    told = {**WELL, **ILL.get(ill, {})}
    series = [{"series": name % HERE, "values": values} for name, values in told.items()]
    other = [{"series": name % HERE.replace("a:", "b:"), "values": values} for name, values in WELL.items()]
    asked = [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "90m"}]
    asked[0]["exp_samples"] = [{"labels": f'{{alertname="{ill}"}}', "value": 1}] if ill else []
    test = {"interval": "1m", "input_series": [*series, *other], "promql_expr_test": asked}
    path = tmp_path / "test.yml"
    path.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}))
    result = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


class Watcher:
    """Prometheus with the rules as they are, which asks one gateway each second.

    Args:
        folder: For its files.
        target: HOST:PORT of the gateway's admin door.
    """

    def __init__(self, folder, target):
        self._folder = folder
        self._url = f"http://127.0.0.1:{find_port()}"
        shutil.copy(ALERTS, folder)
        often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        scraped = [{"job_name": "lmq", "static_configs": [{"targets": [target]}]}]
        settings = {"global": often, "rule_files": [ALERTS.name], "scrape_configs": scraped}
        (folder / "prometheus.yml").write_text(json.dumps(settings))

    def __enter__(self):
        port = self._url.rpartition(":")[2]
        self._log = (self._folder / "log").open("w")
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        return self

    def __exit__(self, *exc_info):
        self._process.kill()
        self._process.wait()
        self._log.close()

    def ask(self, path, **asked):
        """Return what it answers, None while it does not."""
        try:
            return httpx.get(f"{self._url}/api/v1/{path}", params=asked).raise_for_status().json()["data"]
        except httpx.HTTPError:
            return None

    def count(self, query):
        """Return the value of a query of one sample, 0 where there is none yet."""
        found = self.ask("query", query=query)
        return float(found["result"][0]["value"][1]) if found and found["result"] else 0

    def firing(self):
        """Return the names of the alerts that fire, and what they say."""
        alerts = self.ask("alerts")["alerts"]
        return {one["labels"]["alertname"]: one["annotations"]["summary"] for one in alerts if one["state"] == "firing"}


def find_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(condition):
    until_s = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < until_s
        threading.Event().wait(0.2)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's package prometheus has it")
def test_a_live_gateway_sets_off_no_alert_until_it_is_started_again_and_again(tmp_path):
    address = f"127.0.0.1:{find_port()}"
    doors = ("mqtt", "amqp", "namesrv", "broker")
    gateway = GatewayProcess(tmp_path / "data", "--admin", address, doors=doors)
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with gateway, Watcher(folder, address) as watcher:
        wait_for(lambda: watcher.count("count_over_time(lmq_up[5m])") >= 8)
        assert watcher.firing() == {}
        for _ in range(2):
            before = watcher.count("process_start_time_seconds")
            gateway.kill()
            gateway.start()
            wait_for(lambda before=before: watcher.count("process_start_time_seconds") > before)
        wait_for(watcher.firing)
        assert watcher.firing().keys() == {"LmqRestarts"}
        rules = [rule for group in watcher.ask("rules")["groups"] for rule in group["rules"]]
        assert {rule["health"] for rule in rules} == {"ok"}
