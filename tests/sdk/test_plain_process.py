"""The SDK in programs that nobody prepared: they bring what they need, and take it away."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import template_database
from tests.config.conftest import PROJECT, House
from tests.polling import wait_until

ADD_AND_SEARCH = """
import json, logging
from palace.sdk import Memory
memory = Memory(owner="me@example.org")
[event] = memory.add("User likes Python", user_id="alice")["results"]
found = memory.search("programming languages", user_id="alice")["results"]
print(json.dumps([event["event"], found[0]["memory"], memory.owner.has_usable_password()]))
print(json.dumps([memory.owner.username, memory.owner.email, logging.getLogger().handlers]))
"""
ASYNC = """
import asyncio, json
from palace.sdk import AsyncMemory

async def main():
    memory = AsyncMemory(owner="me@example.org")
    sayings = ("User likes Python", "User lives in NYC", "User has a cat called Miso")
    await asyncio.gather(*(memory.add(text, user_id="alice") for text in sayings))
    found = await memory.get_all(user_id="alice")
    print(json.dumps(sorted(item["memory"] for item in found["results"])))

asyncio.run(main())
"""


@pytest.fixture
def house(tmp_path):
    built = House(tmp_path / "home")
    built.environment.pop("DJANGO_SETTINGS_MODULE", None)
    built.environment["LOCI_EMBEDDED_FSYNC"] = "off"
    yield built
    built.tear_down()


def start(house, program):
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=house.environment | {"PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path])},
        cwd=house.home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(house, program):
    out, said = start(house, program).communicate(timeout=200)
    return [json.loads(line) for line in out.splitlines()], said


def test_a_first_program_starts_services_and_makes_tables_and_account(house):
    lines, said = run(house, ADD_AND_SEARCH)
    assert lines == [
        ["ADD", "User likes Python", False],
        ["me@example.org", "me@example.org", []],
    ], said
    assert said == ""
    assert wait_until(lambda: house.names() == [], 20), house.names()


@pytest.mark.exhaustive
def test_calls_awaited_at_once_are_all_kept(house):
    template_database.furnish(house.home)
    lines, said = run(house, ASYNC)
    assert len(lines[0]) == 3, said
    assert said == ""


@pytest.mark.exhaustive
def test_two_first_programs_at_once_share_what_they_started(house):
    both = [start(house, ADD_AND_SEARCH) for _ in range(2)]
    events = []
    for program in both:
        out, said = program.communicate(timeout=200)
        assert program.returncode == 0, said
        events.append(json.loads(out.splitlines()[0])[0])
    assert sorted(events) == ["ADD", "NONE"]
    assert wait_until(lambda: house.names() == [], 20), house.names()


@pytest.mark.exhaustive
def test_a_server_whose_tables_are_old_gets_a_sentence(house):
    program = """
from config import embedded, settings
with embedded.services(settings.EMBEDDED):
    import os
    os.environ["DATABASE_URL"] = settings.EMBEDDED.database_url
    os.environ["REDIS_URL"] = settings.EMBEDDED.redis_url
    os.environ["LOCI_SECRET_KEY"] = "of this server"
    import importlib
    importlib.reload(settings)
    from palace.sdk import Memory, SetupError
    try:
        Memory(owner="me@example.org")
    except SetupError as error:
        import json
        print(json.dumps(str(error)))
"""
    lines, said = run(house, program)
    assert lines, said
    assert "Run `manage.py migrate`" in lines[0]


PROGRAM = """
import json
from language.errors import PalaceError
try:
    from palace.sdk import Memory
    Memory(owner="me@example.org")
except PalaceError as error:
    print(json.dumps([error.code, str(error)]))
"""


@pytest.mark.exhaustive
def test_services_that_cannot_start_get_a_sentence(house):
    (house.home / "postgres").mkdir(parents=True)
    (house.home / "postgres" / "PG_VERSION").write_text("nonsense")
    [[code, sentence]], _ = run(house, PROGRAM)
    assert code == "setup_error"
    assert sentence.startswith("Loci's own PostgreSQL and Redis could not start: Postgres")
    assert wait_until(lambda: house.names() == [], 20), house.names()


def test_a_folder_that_cannot_be_made_gets_a_sentence(house):
    house.home.write_text("A file stands where the folder should be.")
    [[code, sentence]], _ = run(house, PROGRAM)
    assert (code, str(house.home) in sentence) == ("setup_error", True)


def test_a_setting_that_makes_no_sense_gets_a_sentence(house):
    house.environment["LOCI_DEBUG"] = "maybe"
    [[code, sentence]], _ = run(house, PROGRAM)
    assert (code, "LOCI_DEBUG is 'maybe'" in sentence) == ("setup_error", True)
