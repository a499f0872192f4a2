"""The whole way back, with programs as people start them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.config.backup.test_restore import rewritten

REMEMBER = """
from django.contrib.auth import get_user_model
from palace.knowledge.facts.fact_learning import learn_unread
from palace.models import Palace
from palace.mining.pipeline import mine
from tests.conversations import transcript
palace = Palace.objects.own(get_user_model().objects.create_superuser("owner"))
mine(palace, transcript(
    "I live in Lisbon.", "Grandma’s: 3 eggs,\\tno sugar.  \\r\\n", "I live in Porto now."
))
learn_unread(palace)
"""


def remember(house):
    house.manage("shell", "-v", "0", "-c", REMEMBER)


READ = (
    "from palace.models import Drawer;"
    "print(ascii(list(Drawer.objects.order_by('position').values_list('text', flat=True))))"
)


def drills() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("loci-drill-*"))


@pytest.mark.lengthy
@pytest.mark.exhaustive
def test_a_backup_is_restored_elsewhere_and_found_whole(house, new_house_beside, tmp_path):
    remember(house)
    (tmp_path / "phrase").write_text("correct horse")
    sealed = ("--passphrase-file", str(tmp_path / "phrase"))
    file = str(tmp_path / "one.locibackup")
    house.manage("backup", file, *sealed)
    before = set(drills())
    drilled = house.manage("backup", "--drill", file, *sealed, "--json")
    assert "whole; 3 drawers" in drilled.stderr
    assert json.loads(drilled.stdout) == {"file": file, "whole": True}
    assert set(drills()) <= before, "The temporary place is gone."

    refused = house.manage("restore", file, *sealed, check=False)
    assert refused.returncode == 1
    assert "add --replace --yes" in refused.stderr

    elsewhere = new_house_beside
    elsewhere.manage("restore", file, *sealed)
    assert elsewhere.manage("shell", "-v", "0", "-c", READ).stdout == (
        house.manage("shell", "-v", "0", "-c", READ).stdout
    )
    key = "secret_key"
    assert (elsewhere.home / key).read_text() == (house.home / key).read_text()


@pytest.mark.exhaustive
def test_a_drill_says_that_a_backup_is_no_way_back(house, tmp_path):
    remember(house)
    house.manage("backup", str(tmp_path / "one.locibackup"))
    changed = rewritten(tmp_path / "one.locibackup", rows={"palace_drawer": 4})
    failed = house.manage("backup", "--drill", str(changed), check=False)
    assert failed.returncode == 1
    assert "palace_drawer has other than 4 rows" in failed.stderr
    assert "cannot be restored, or is not whole" in failed.stderr
    assert "Traceback" not in failed.stderr
