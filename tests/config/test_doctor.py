"""`manage.py doctor` on the embedded services: it names what hangs, and says what to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress

import psycopg
import pytest

from config import embedded
from tests.config.test_embedded import as_root, using


@pytest.mark.parametrize("name", ["postgres", pytest.param("redis", marks=pytest.mark.exhaustive)])
def test_a_paused_service_is_named_with_what_wakes_it(house, name):
    with using(house):
        pid = getattr(embedded.Layout(house.home), name).pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            found = house.manage("doctor", check=False)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert found.returncode == 1
        [wrong] = [line for line in found.stdout.splitlines() if line.startswith("WRONG")]
        assert f"{name.capitalize()} does not answer" in wrong
        assert f"It is paused (process {pid}); `kill -CONT {pid}` lets it go on." in wrong
        assert "lock file" not in found.stdout
        assert "Traceback" not in found.stderr


def test_a_database_that_cannot_be_opened_is_said_to_be_so(house):
    layout = embedded.Layout(house.home)
    server = embedded._url(layout, "postgres")
    with using(house), ExitStack() as taken:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("ALTER DATABASE loci RENAME TO another")
            gone = house.manage("doctor", check=False)
            connection.execute("ALTER DATABASE another RENAME TO loci")
        with suppress(psycopg.OperationalError):
            while True:
                taken.enter_context(psycopg.connect(server))
        full = house.manage("doctor", check=False)
    for found, why in ((gone, 'database "loci" does not exist'), (full, "too many clients")):
        [wrong] = [line for line in found.stdout.splitlines() if line.startswith("WRONG")]
        assert "Postgres runs, but Loci's database cannot be opened" in wrong
        assert why in wrong
        assert "Traceback" not in found.stderr


def test_a_database_that_only_reads_and_a_model_that_is_away_are_named(house):
    with socket.create_server(("127.0.0.1", 0)) as server:
        at = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        house.environment |= {"LOCI_LLM_PROVIDER": at, "LOCI_LLM_MODEL": "one"}
        assert " answers" in language_model(house.manage("doctor", check=False))
    with using(house):
        with psycopg.connect(embedded.Layout(house.home).database_url) as connection:
            connection.execute("ALTER DATABASE loci SET default_transaction_read_only = on")
        found = house.manage("doctor", check=False)
    wrong = [line for line in found.stdout.splitlines() if line.startswith("WRONG")]
    assert "it takes no writes" in wrong[0]
    assert "does not answer" in language_model(found)
    assert "correct LOCI_LLM_PROVIDER." in wrong[-1]


def language_model(found):
    [line] = [line for line in found.stdout.splitlines() if "language model" in line]
    return line


@as_root
def test_a_disk_that_is_read_only_is_named(house):
    house.manage("check")  # Makes the signing key.
    subprocess.run(["mount", "--bind", house.home, house.home], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", house.home], check=True)
        found = house.manage("doctor", check=False)
    finally:
        subprocess.run(["umount", house.home], check=True)
    folder, database = [line for line in found.stdout.splitlines() if line.startswith("WRONG")]
    assert "is read-only; set LOCI_HOME to another folder." in folder
    assert "The disk is read-only; set LOCI_HOME" in database


@as_root
def test_a_disk_that_takes_no_more_is_named(new_house):
    new_house.home.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "loci", new_house.home], check=True)
    try:
        found = new_house.manage("doctor", check=False)
    finally:
        subprocess.run(["umount", new_house.home], check=True)
    [folder, _] = [line for line in found.stdout.splitlines() if line.startswith("WRONG")]
    assert "data folder" in folder
    assert "The disk is full; free some space" in folder
