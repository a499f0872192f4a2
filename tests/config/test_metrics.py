from __future__ import annotations

import os
import re
import subprocess
import sys

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured

from palace.curation.purge import purge_trash
from palace.models import Drawer
from palace.recall import RecallRequest, recall
from tests.asgi_server import AsgiServer
from tests.config.conftest import PROJECT

TOKEN = "a-token-for-prometheus"
SENT = {"Authorization": f"Bearer {TOKEN}"}
OWNER = "Quokkazanzibarin"


@pytest.fixture
def measures(client, settings):
    """What Prometheus is given, by name and labels."""
    settings.METRICS_TOKEN = TOKEN

    def read():
        answer = client.get("/metrics", headers=SENT)
        assert answer.status_code == 200
        found = re.findall(r"^(loci_\S+?)(\{.*\})? (\S+)$", answer.text, re.MULTILINE)
        return {f"{name}{labels}": float(value) for name, labels, value in found}

    return read


def test_nobody_is_given_anything_unless_a_token_is_set(db, client, settings):
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
    settings.METRICS_TOKEN = TOKEN
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        refused = client.get("/metrics", headers=headers)
        assert (refused.status_code, refused["WWW-Authenticate"]) == (401, "Bearer")
        assert "loci_" not in refused.text


@pytest.mark.parametrize("token", ["short", "ä" * 20])
def test_a_token_that_can_be_guessed_or_not_sent_stops_the_start(read_settings, token):
    with pytest.raises(ImproperlyConfigured, match=r"^LOCI_METRICS_TOKEN must be 16 or more"):
        read_settings(LOCI_METRICS_TOKEN=token)


def test_requests_are_counted_by_door_and_status(transactional_db, measures):
    before = measures()
    with AsgiServer() as server:
        httpx2.get(f"{server.url}/health/live")
        httpx2.get(f"{server.url}/v1/memories/")
        httpx2.get(f"{server.url}/no/{OWNER}")
        httpx2.post(f"{server.url}/mcp")
        httpx2.post(f"{server.url}/oauth/token")
        httpx2.get(f"{server.url}/static/css/base.css")
        httpx2.request("MADEUP", f"{server.url}/health/live")
    # The server has stopped: every line and count is written.
    after = measures()
    grown = {name for name in after if name.startswith("loci_requests_total")}
    grown = {name for name in grown if after[name] > before.get(name, 0)}
    assert grown == {
        'loci_requests_total{door="health",method="GET",status="200"}',
        'loci_requests_total{door="health",method="OTHER",status="403"}',
        'loci_requests_total{door="rest",method="GET",status="401"}',
        'loci_requests_total{door="unknown",method="GET",status="404"}',
        'loci_requests_total{door="mcp",method="POST",status="401"}',
        'loci_requests_total{door="oauth",method="POST",status="400"}',
        'loci_requests_total{door="static",method="GET",status="200"}',
    }


def test_recall_mining_tasks_and_models_are_measured_without_content(lived_in, measures):
    before = measures()
    recall(lived_in, RecallRequest(OWNER))
    purge_trash.apply()
    after = measures()
    for name in (
        "loci_recall_seconds_count",
        'loci_tasks_total{state="success",task="palace.tasks.purge_trash"}',
        'loci_model_calls_total{outcome="ok",purpose="memory_embed"}',
    ):
        assert after[name] == before.get(name, 0) + 1, name
    assert after["loci_recall_seconds_sum"] > before.get("loci_recall_seconds_sum", 0)
    assert OWNER not in "".join(after)


def test_what_waits_is_counted_and_how_long_the_oldest_has_waited(lived_in, measures, queued):
    purge_trash.delay()
    before = measures()
    assert before['loci_waiting{what="long tasks"}'] == 1
    assert before['loci_waiting{what="tasks"}'] == 0
    assert before['loci_waiting{what="messages to mine"}'] == 0
    Drawer.objects.within(lived_in).update(mined_at=None)
    after = measures()
    assert after['loci_waiting{what="messages to mine"}'] == Drawer.objects.count() > 0
    assert after['loci_waiting_seconds{what="messages to mine"}'] > 0
    assert after['loci_away{service="database"}'] == 0


def test_while_a_service_is_away_the_others_are_measured(db, measures, monkeypatch, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    found = measures()
    assert found['loci_away{service="redis"}'] == 1
    assert found['loci_away{service="database"}'] == 0
    assert 'loci_waiting{what="tasks"}' not in found


COUNTS = """
import os, sys
sys.path.insert(0, {project!r})
from pathlib import Path
from config import environment
environment.count_in(Path({folder!r}))
from prometheus_client import Counter
counter = Counter("loci_requests", "", ["door", "method", "status"])
counter.labels("pages", "GET", "200").inc(3)
"""


def test_what_all_processes_have_counted_is_added_up(db, measures, settings, monkeypatch, tmp_path):
    settings.METRICS_FOLDER = tmp_path
    code = COUNTS.format(project=str(PROJECT), folder=str(tmp_path))
    environment = {**os.environ}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    counted = 'loci_requests_total{door="pages",method="GET",status="200"}'
    assert measures()[counted] == 6
