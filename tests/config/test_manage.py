from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from tests.config.conftest import PROJECT
from tests.polling import wait_until


def test_a_command_brings_its_own_services_and_takes_them_away(house):
    counted = house.manage(
        "shell", "-c", "from palace.models import Palace; print(Palace.objects.count())"
    )
    assert counted.stdout.splitlines()[-1] == "0"
    assert house.names() == []


@pytest.mark.exhaustive
def test_of_two_commands_at_once_the_one_that_ends_first_takes_nothing_from_the_other(house):
    ask = "from palace.models import Palace; print(Palace.objects.count(), flush=True)"
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    slow = house.start("shell", "-v0", "-c", f"{ask}\ninput()\n{ask}", **options)
    assert slow.stdout.readline() == "0\n"
    assert house.manage("shell", "-v0", "-c", ask).stdout == "0\n"
    out, _ = slow.communicate("\n", timeout=180)
    assert (slow.returncode, out) == (0, "0\n")
    assert wait_until(lambda: house.names() == [], 10), house.names()


def test_help_starts_nothing(new_house):
    house = new_house
    assert "run" in house.manage("help").stdout
    assert not (house.home / "postgres").exists()


def test_output_that_nobody_reads_any_more_ends_a_command_without_a_word(new_house):
    shown = new_house.start("help", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    shown.stdout.close()
    with shown.stderr as said:
        assert said.read() == ""
    assert shown.wait() == 128 + signal.SIGPIPE


def test_an_unknown_command_starts_nothing(new_house):
    refused = new_house.manage("migrat", check=False)
    assert refused.returncode == 1
    assert "Unknown command: 'migrat'. Did you mean migrate?" in refused.stderr
    assert not (new_house.home / "postgres").exists()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("LOCI_DEBUG", "maybe", "LOCI_DEBUG is 'maybe'; it must be true or false."),
        ("LOCI_LLM_TIMEOUT_S", "long", "LOCI_LLM_TIMEOUT_S is 'long'; it must be a number."),
        ("DATABASE_URL", "postgresql://elsewhere/loci", "Set both DATABASE_URL and REDIS_URL"),
        ("REDIS_URL", "redis://elsewhere", "Set both DATABASE_URL and REDIS_URL"),
        ("LOCI_HOME", "/proc/nope", "The data folder /proc/nope cannot be made: No such file"),
    ],
)
def test_a_setting_that_makes_no_sense_gets_a_sentence(new_house, name, value, sentence):
    house = new_house
    house.environment[name] = value
    refused = house.manage("check", check=False)
    assert refused.returncode != 0
    assert refused.stderr.startswith(f"Loci: {sentence}")


def test_a_server_needs_a_key_of_its_own(new_house):
    house = new_house
    house.environment |= {
        "DATABASE_URL": "postgresql://elsewhere/loci",
        "REDIS_URL": "redis://there",
    }
    refused = house.manage("check", check=False)
    assert refused.stderr.startswith("Loci: Set LOCI_SECRET_KEY")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "command",
    [
        ["migrate"],
        pytest.param(["check", "--database", "default"], marks=pytest.mark.exhaustive),
        pytest.param(["run"], marks=pytest.mark.exhaustive),
    ],
)
def test_a_database_that_is_not_there_gets_a_sentence(new_house, command, free_port):
    house = new_house
    house.environment |= {
        "DATABASE_URL": f"postgresql://loci:a-secret@127.0.0.1:{free_port}/loci",
        "REDIS_URL": "redis://127.0.0.1:1",
        "LOCI_SECRET_KEY": "x" * 50,
        "LOCI_DB_START_WAIT_S": "2.5",
    }
    refused = house.manage(*command, check=False)
    where = f"127.0.0.1:{free_port}/loci"
    assert f"the database at {where} has not answered for" in refused.stderr
    assert f"the database at {where} does not answer yet" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr
    assert "a-secret" not in refused.stdout + refused.stderr
    assert refused.returncode != 0


def test_without_its_packages_it_says_what_to_do():
    bare = shutil.which("python3", path="/usr/bin") or sys.executable
    refused = subprocess.run(
        [bare, "-I", "-S", str(PROJECT / "manage.py"), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Run `make setup`" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="Root may write everywhere.")
def test_a_folder_that_may_not_be_written_gets_a_sentence(new_house):
    house = new_house
    house.home.parent.chmod(0o500)
    refused = house.manage("check", check=False)
    house.home.parent.chmod(0o700)
    assert "run Loci as the user it belongs to" in refused.stderr
    assert "Traceback" not in refused.stderr
