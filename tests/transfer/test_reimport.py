"""An export read into a palace that holds something: the same messages, once."""

from __future__ import annotations

import json
import zipfile

import pytest

from language.errors import BadImport
from palace.models import Drawer, Palace
from palace.transfer import import_jobs
from palace.transfer.importers import LOCI, detect, read
from palace.transfer.importers.loci import IN_TRASH
from tests.factories import RoomFactory, WingFactory
from tests.transfer.palaces import lines_of

SAME = ("source", "conversation", "message", "position", "role", "speaker", "text", "said_at")


def run_import(palace, path):
    job = import_jobs.preview(palace, path)
    import_jobs.start(job)
    while not import_jobs.run_slice(job):
        pass
    receipt = import_jobs.receipt(job)
    assert receipt["in"] == receipt["stored"] + receipt["present"] + receipt["skipped"]
    return {name: receipt[name] for name in ("stored", "present", "skipped_why")}


def messages(path):
    said = [each for each in lines_of(path, "drawers") if not each["trashed_at"]]
    kept = [{name: each[name] for name in (*SAME, "metadata")} for each in said]
    return sorted(kept, key=lambda each: (each["conversation"], each["position"]))


def test_exported_imported_and_exported_again_it_is_the_same(full, exported, bob):
    path = exported(full)
    other = Palace.objects.own(bob)
    RoomFactory(wing=WingFactory(palace=other), title="Something of his own")
    assert run_import(other, path) == {"stored": 5, "present": 0, "skipped_why": {IN_TRASH: 1}}
    again = exported(other, "again.zip")
    assert messages(again) == messages(path)
    assert all(each["mined"] for each in lines_of(again, "drawers"))
    assert run_import(other, path) == {"stored": 0, "present": 5, "skipped_why": {IN_TRASH: 1}}
    assert run_import(full, path) == {"stored": 0, "present": 5, "skipped_why": {IN_TRASH: 1}}
    assert Drawer.objects.filter(palace=full).count() == 6


def rewritten(path, changes):
    """The export with some of its members replaced."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    changed = path.with_name("changed.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for name, content in (members | changes).items():
            if content is not None:
                archive.writestr(name, content)
    return changed


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data/drawers.jsonl": '{"text": "Put in"}\n'}, "its checksum differs"),
        ({"data/rooms.jsonl": None}, r"holds no data/rooms\.jsonl"),
        ({"manifest.json": "{"}, r"no readable manifest\.json"),
        ({"manifest.json": "[]"}, "is no Loci export"),
        (
            {"manifest.json": json.dumps({"format": "loci-palace", "version": 2})},
            "written by a newer Loci",
        ),
    ],
)
def test_what_is_not_as_it_was_exported_is_refused(palace, exported, changes, sentence):
    path = rewritten(exported(palace), changes)
    assert detect(path) is LOCI
    with pytest.raises(BadImport, match=sentence):
        list(read(path, LOCI))
