"""A database as version 0.6.0 left it, started with today's program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import psycopg
import pytest

from config import embedded
from tests.config.conftest import House

pytestmark = pytest.mark.exhaustive

# `pg_dump --format=custom` of two people, three palaces and 20 messages; see README.md beside it.
DUMP = Path(__file__).with_name("loci-0.6.0.dump")
VERBATIM = " Two spaces before,\ttab and CRLF:\r\n# not a heading\u2028\N{EM DASH} end  "


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("old") / "home")
    layout = embedded.Layout(house.home)
    with embedded.services(layout):
        restore = embedded.postgres_bin() / "pg_restore"
        subprocess.run(
            [restore, "--exit-on-error", "--no-owner", "--dbname", layout.database_url, DUMP],
            check=True,
        )
        before = columns(layout)
        house.manage("migrate", "--verbosity=0")
        yield house, layout, before
    house.tear_down()


def rows(layout, query):
    with psycopg.connect(layout.database_url) as connection:
        return connection.execute(query).fetchall()


COLUMNS = """
SELECT table_name, column_name,
  is_nullable = 'YES' OR is_identity = 'YES' OR column_default IS NOT NULL
FROM information_schema.columns WHERE table_schema = 'public'
"""


def columns(layout):
    """By table and column, whether a row can be added that does not name it."""
    return {(table, column): optional for table, column, optional in rows(layout, COLUMNS)}


def test_its_programs_can_write_on_until_they_are_replaced(upgraded):
    _, layout, before = upgraded
    tables = {table for table, _ in before}
    now = columns(layout)
    assert set(before) <= set(now)
    added = {key for key in now if key[0] in tables} - set(before)
    assert added
    assert {key for key in added if not now[key]} == set()


def test_the_audit_finds_every_palace_whole(upgraded):
    house, *_ = upgraded
    audit = house.manage("audit", "--all", "--json", check=False)
    report = json.loads(audit.stdout)
    failed = [
        (palace["name"], finding)
        for palace in report["palaces"]
        for finding in palace["findings"]
        if finding["wrong"]
    ]
    assert failed == []
    assert audit.returncode == 0
    assert len(report["palaces"]) == 3


def test_every_word_is_there_to_the_byte(upgraded):
    _, layout, _ = upgraded
    texts = [text for [text] in rows(layout, "SELECT text FROM palace_drawer ORDER BY id")]
    assert len(texts) == 20
    assert VERBATIM in texts


def test_what_was_known_is_known(upgraded):
    _, layout, _ = upgraded
    known = dict(rows(layout, "SELECT text, fate FROM palace_fact"))
    assert known["User lives in Lisbon"] == ""
    assert known["User lives in Porto"] == "superseded"


def test_recall_finds_it(upgraded):
    house, *_ = upgraded
    found = house.manage("recall", "Which wood did I choose for the boat?", "--user", "ada").stdout
    assert "planked with larch" in found


def test_a_connected_model_stays_connected_for_all_it_was_asked(upgraded):
    _, layout, _ = upgraded
    found = rows(layout, "SELECT provider, awaits_consent, uses FROM settings_app_memorysettings")
    assert found
    for _provider, awaits_consent, uses in found:
        assert not awaits_consent
        assert uses == ["replies", "filing", "facts", "rerank", "dreams"]
