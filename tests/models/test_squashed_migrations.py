"""The migration that makes all tables at once makes those that the replaced ones make."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings

from config import embedded
from tests.config.conftest import PROJECT

ONE_BY_ONE = "from tests import older_tables; older_tables.migrate_one_by_one()"


@pytest.fixture
def make_tables():
    """Make a database with commands of `manage.py`; gives the statements that make its tables."""
    made = []

    def make(name, *commands):
        with closing(psycopg.connect(address("postgres"), autocommit=True)) as server:
            server.execute(f"CREATE DATABASE {name}")
        made.append(name)
        environment = {
            **os.environ,
            "DATABASE_URL": address(name),
            "REDIS_URL": settings.REDIS_URL,
            "LOCI_SECRET_KEY": settings.SECRET_KEY,
        }
        for command in commands:
            words = [sys.executable, PROJECT / "manage.py", *command]
            subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
        dump = [embedded.postgres_bin() / "pg_dump", "--schema-only", "--dbname", address(name)]
        done = subprocess.run(dump, check=True, capture_output=True, text=True)
        return statements(done.stdout)

    yield make
    with closing(psycopg.connect(address("postgres"), autocommit=True)) as server:
        for name in made:
            server.execute(f"DROP DATABASE {name}")


def address(name):
    return f"postgresql://postgres@{quote(str(settings.EMBEDDED.sockets), safe='')}/{name}"


def statements(dump):
    """A dump's statements, each table's columns in alphabetical order."""
    code = re.sub(r"(?m)^(--|\\).*$", "", dump)
    return {
        "\n".join(sorted(line.rstrip(",") for line in each.splitlines()))
        if each.startswith("CREATE TABLE")
        else each
        for each in (part.strip() for part in code.split(";\n\n"))
    }


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_the_tables_made_at_once_are_those_of_each_migration(make_tables):
    at_once = make_tables("at_once", ["migrate", "--verbosity=0"])
    one_by_one = make_tables(
        "one_by_one", ["shell", "--no-imports", "-c", ONE_BY_ONE], ["migrate", "--verbosity=0"]
    )
    assert len(at_once) > 500
    assert at_once == one_by_one
