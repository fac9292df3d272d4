from __future__ import annotations

import json

import pytest

from tests.support.commands import call_lmq, check_refused, check_told, publish_mqtt, run_lmq


def test_report_without_spark_names_the_line_that_adds_it(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.commands.report.find_spec", lambda name: None)
    result = call_lmq("report", "fan-out", "--data-dir", str(tmp_path), "--out", str(tmp_path / "out"))
    check_told(result, r"pip install 'lmq-gateway\[spark\]'")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("option", ["--data-dir", "--out"])
def test_report_with_an_empty_folder_is_refused_in_one_line(tmp_path, option):
    folders = {"--data-dir": str(tmp_path), "--out": str(tmp_path / "out")} | {option: ""}
    result = run_lmq("report", "fan-out", *[part for pair in folders.items() for part in pair])
    check_refused(result, f"^lmq: {option} must name a folder; the current one is \\.$")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
def test_report_is_made_beside_the_running_gateway(running, tmp_path):
    publish_mqtt(running, "plant/1/temp", "21.5")
    folders = ("--data-dir", str(running.data_dir), "--out", str(tmp_path / "report"))
    result = run_lmq("report", "fan-out", *folders, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["page"] == str(tmp_path / "report" / "index.html")
    assert "<html" in (tmp_path / "report" / "index.html").read_text()


def test_report_over_a_folder_that_is_not_there_says_so(monkeypatch):
    monkeypatch.setattr("gateway.commands.report.find_spec", lambda name: name)
    check_told(
        call_lmq("report", "fan-out", "--data-dir", "/nonexist", "--out", "out"), "there is no folder /nonexist$"
    )
