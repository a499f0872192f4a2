"""An uploaded file is read by a process of its own, and not for ever."""

from __future__ import annotations

import hashlib
import json
import resource
import time

import pytest

from language.errors import BadImport
from palace.models import ImportJob
from palace.transfer import import_jobs
from palace.transfer.importers.conversation import conversation_from_line
from palace.transfer.importers.file_reader import Places, prepare
from palace.transfer.spools import spool_folder, spool_path
from tests.transfer.importers.exports import (
    chatgpt_talk,
    loci,
    plain,
    write_json,
    write_lines,
    write_zip,
)

MB = 1 << 20


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_web_process_does_not_read_the_file(palace, tmp_path):
    talk = plain(*["When does the ferry to Vis leave? " * 40] * 1_000)
    file = write_lines(tmp_path / "talks.jsonl", [talk | {"id": f"p{n}"} for n in range(10)])
    # The first one loads what all of them need.
    first = write_lines(tmp_path / "first.jsonl", [talk | {"id": "0"}])
    import_jobs.preview_in_subprocess(palace, first)
    own, children = time.thread_time(), cpu_of_children()
    job = import_jobs.preview_in_subprocess(palace, file)
    own, children = time.thread_time() - own, cpu_of_children() - children
    assert job.messages_total == 10_000
    assert children > own


def test_it_is_prepared_as_it_is_in_the_terminal(palace, bob, tmp_path):
    file = write_json(tmp_path / "conversations.json", [chatgpt_talk("Which tea?", "", "Oolong.")])
    apart = import_jobs.preview_in_subprocess(palace, file, file_name="Märchen \udc80 “会話”.json")
    expected, prepared = apart.preview, spool_path(apart).read_bytes()
    assert import_jobs.discard(apart)
    here = import_jobs.preview(palace, file)
    assert (here.preview, spool_path(here).read_bytes()) == (expected, prepared)
    assert [turn.text for turn in conversation_from_line(prepared).turns] == [
        "Which tea?",
        "Oolong.",
    ]


def test_what_takes_too_long_is_refused_and_leaves_nothing(palace, tmp_path, settings):
    settings.READ_UPLOAD_S = 0.001
    settings.LOCI_HOME = tmp_path / "home"
    file = write_lines(tmp_path / "talks.jsonl", [plain("Q", "A")])
    with pytest.raises(BadImport, match=r"takes longer than 0\.001 seconds to read"):
        import_jobs.preview_in_subprocess(palace, file)
    assert not ImportJob.objects.exists()
    assert not list(spool_folder().glob("*"))


@pytest.mark.parametrize("depth", [100, 800, 990, 100_000])
def test_what_is_nested_deeply_is_kept_or_refused(tmp_path, depth):
    """Beside a message; reading a value in takes less room for calls than going through it."""
    drawer = {"conversation": "c", "message": "m", "role": "user", "text": "Q", "metadata": "deep"}
    text = json.dumps(drawer).replace('"deep"', f'{{"a": {"[" * depth}{"]" * depth}}}')
    members = loci([{"conversation": "c"}], [])
    sums = members["manifest.json"]["files"]
    members["data/drawers.jsonl"] = text
    sums["data/drawers.jsonl"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    file = write_zip(tmp_path / "loci.zip", members)
    places = Places(tmp_path / "spool", tmp_path / "listed")
    if depth <= 100:
        prepare(file, "loci.zip", places, may_be_whole=False)
        assert conversation_from_line(places.spool.read_bytes()).turns[0].text == "Q"
    else:
        with pytest.raises(BadImport, match="nested too deeply"):
            prepare(file, "loci.zip", places, may_be_whole=False)
