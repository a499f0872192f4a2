"""docker-compose.yml, as far as it can be checked without Docker; and what restarts a container."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml
from django.conf import settings

from tests.polling import until

DOCKERFILE = settings.BASE_DIR / "Dockerfile"
COMPOSE = settings.BASE_DIR / "docker-compose.yml"
PROBE = settings.BASE_DIR / "config" / "restart_unhealthy.py"
SERVICES = yaml.safe_load(COMPOSE.read_text())["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_gets_no_more_than_it_needs(name):
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]  # noqa: S108 - of the container.
    assert service["mem_limit"].startswith("${")
    assert service.get("privileged") is None


def test_images_of_others_are_pinned_by_digest():
    images = {service["image"] for service in SERVICES.values()} - {"loci"}
    images |= set(re.findall(r"^FROM (.+)$", DOCKERFILE.read_text(), flags=re.MULTILINE))
    assert len(images) == 3
    for image in images:
        assert re.fullmatch(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "migrate"])
def test_what_ends_or_is_unhealthy_is_started_again(name):
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"]
    if service["image"] == "loci":
        assert "config/restart_unhealthy.py" in " ".join(service["healthcheck"]["test"])


def test_one_worker_takes_short_tasks_alone():
    assert SERVICES["worker"]["command"][-2:] == ["--queues", "celery"]
    assert "--queues" not in SERVICES["long-worker"]["command"]


@pytest.fixture
def container():
    """A process with a child, as a container's first has one."""
    with subprocess.Popen(
        ["sh", "-c", "sleep 600 & wait; exit 7"], stdin=subprocess.DEVNULL
    ) as process:
        until(lambda: _children(process.pid))
        yield process
        if process.poll() is None:
            subprocess.run(["kill", "-9", *_children(process.pid)], check=False)


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:  # noqa: PTH123 - no file.
        return children.read().split()


def check(container, *command, starts_s="0"):
    arguments = [sys.executable, "-P", str(PROBE), str(container.pid), *command]
    environment = {"PATH": "/bin:/usr/bin", "LOCI_STARTS_S": starts_s}
    return subprocess.run(arguments, env=environment).returncode


def test_what_still_starts_is_left_alone(container):
    for _ in range(5):
        assert check(container, "false", starts_s="60") == 1
    assert container.poll() is None


def test_what_fails_three_times_in_a_row_is_ended(container):
    for _ in range(2):
        assert check(container, "false") == 1
    assert check(container, "true") == 0
    for _ in range(2):
        assert check(container, "false") == 1
    assert _children(container.pid)
    assert check(container, "no-such-program") == 1
    assert container.wait(10) == 7
