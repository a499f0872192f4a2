"""An operator's own database, whose account is no superuser: as docs/configuration.md has it."""

from __future__ import annotations

import re

import psycopg
import pytest

from config import embedded
from tests.config.backup.test_drill import READ, REMEMBER
from tests.config.conftest import PROJECT, House, new_house  # noqa: F401

AS_DOCUMENTED = re.search(
    r"```sql\n(.*?)```", (PROJECT / "docs/configuration.md").read_text(), re.DOTALL
)[1]
EXTENSION, *ROLES = AS_DOCUMENTED.splitlines()

READ_AS_A_PROGRAM = """
from django.contrib.auth import get_user_model
from isolation import row_access
from palace.models import Drawer, Palace
from palace.models import open_palace
with row_access.deny_all():
    print(Drawer.objects.count())
with open_palace(Palace.objects.get()):
    print(Drawer.objects.count())
"""


@pytest.fixture
def server(new_house):  # noqa: F811
    """An empty PostgreSQL and Redis, and a Loci that is to use them with a plain account."""
    layout = embedded.Layout(new_house.home)
    with embedded.services(layout):
        yield layout


def has_account(layout, house: House, name: str, *statements: str) -> None:
    """Give the account a database of its own, and `house` the account."""
    administrator = layout.database_url.removesuffix("loci")
    with psycopg.connect(f"{administrator}postgres", autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
    with psycopg.connect(f"{administrator}{name}", autocommit=True) as connection:
        for statement in (EXTENSION, *statements):
            connection.execute(statement)
    address = administrator.replace("postgres@", f"{name}@")
    house.environment |= {
        "DATABASE_URL": f"{address}{name}",
        "REDIS_URL": layout.redis_url,
        "LOCI_SECRET_KEY": "k" * 50,
    }


def shell(house: House, script: str) -> str:
    return house.manage("shell", "-v", "0", "-c", script).stdout


def lives(house: House, file: str) -> None:
    """Tables are made, a palace is filled and kept apart, saved, lost, and restored."""
    house.manage("migrate")
    said = shell(house, f"{REMEMBER}{READ}{READ_AS_A_PROGRAM}")
    assert said.split()[-2:] == ["0", "3"]
    assert ": 0 failed." in house.manage("audit", "--all").stdout
    house.manage("backup", file)
    shell(house, "from palace.models import Drawer; Drawer.objects.all().delete()")
    assert "3 drawers" in house.manage("restore", file, "--replace", "--yes").stdout
    assert shell(house, f"{READ}{READ_AS_A_PROGRAM}") == said


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("maker", ("ALTER ROLE maker CREATEROLE",)),
        ("documented", [each.replace("TO loci ", "TO documented ") for each in ROLES]),
    ],
)
def test_it_owns_its_tables_and_sees_its_backup(name, statements, server, new_house, tmp_path):  # noqa: F811
    has_account(server, new_house, name, *statements)
    lives(new_house, str(tmp_path / "one.locibackup"))


@pytest.mark.exhaustive
def test_without_either_it_is_a_sentence(server, new_house):  # noqa: F811
    has_account(server, new_house, "bare")
    refused = new_house.manage("migrate", check=False)
    assert refused.returncode == 1
    assert "cannot make the roles that keep palaces apart" in refused.stderr
    assert "docs/configuration.md" in refused.stderr
    assert "Traceback" not in refused.stderr
