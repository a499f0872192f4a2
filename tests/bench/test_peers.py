"""Systems side by side: how others are spoken with, what is measured, and what is reported."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.db import connection

from bench.datasets import Case, Question
from bench.management.commands import bench_first
from bench.management.commands.bench_peers import FEW, TOP_K, Sheet, table
from bench.peers.adapters import MiniLM
from bench.peers.systems import PEERS, Found, Inside, PeerFailed, Weight, peer_process, process
from bench.runs import own_schema
from language.transcripts import Transcript, Turn
from llm.embedding import model_build
from llm.embedding.local import embedder
from palace.models import Drawer
from tests.bench.test_commands import LOCOMO

SAID_AT = datetime(2024, 3, 1, 9, tzinfo=UTC)


def talk(number, *texts, speaker=""):
    turns = tuple(
        Turn(str(place), "user", text, SAID_AT + timedelta(minutes=place), speaker=speaker)
        for place, text in enumerate(texts)
    )
    return Transcript("test", str(number), "", turns)


def question(text, *turns):
    sessions = frozenset(turn.split("/")[0] for turn in turns)
    return Question("q", "plain", text, SAID_AT, frozenset(turns), sessions)


NORA = Case(
    "nora",
    (
        talk(1, "I adopted a parrot called Quill.", "He is green."),
        talk(2, "My bus was late again.", "It rained on the market all day."),
    ),
    (
        question("Which parrot was adopted?", "1/0"),
        question("Was the bus late?", "2/0"),
    ),
)


@pytest.fixture
def plain_peer():
    with process("Plain", [sys.executable, "-m", "tests.bench.plain_peer"]) as outside:
        yield outside


def test_a_peer_takes_in_and_finds_whatever_it_prints(plain_peer):
    assert plain_peer.take_in(NORA) >= 0
    found = plain_peer.ask(question("is the parrot called quill."), 3)
    assert found.turns[0] == "1/0"
    assert len(found.turns) == len(set(found.turns)) == 3
    assert found.seconds >= 0


def test_a_peer_is_weighed_by_the_files_of_the_person_taken_in_last(plain_peer):
    plain_peer.take_in(NORA)
    texts = [turn.text for transcript in NORA.transcripts for turn in transcript.turns]
    assert plain_peer.weigh().disk == sum(map(len, texts))
    plain_peer.take_in(Case("bob", (talk(1, "Salt."),), ()))
    assert plain_peer.weigh().disk == len("Salt.")


def test_a_small_peer_is_not_weighed_with_the_memory_of_who_started_it(plain_peer):
    much = np.ones(300 * 2**20, dtype=np.uint8)
    with process("Plain", [sys.executable, "-m", "tests.bench.plain_peer"]) as another:
        assert another.weigh().memory < much.nbytes


def test_a_peer_is_given_names_of_speakers_where_there_are_any(plain_peer):
    plain_peer.take_in(
        Case("two", (talk(1, "I sold it."), talk(2, "I sold it.", speaker="Ivo")), ())
    )
    assert plain_peer.ask(question("ivo: sold"), 1).turns[0] == "2/0"


def test_a_peer_gets_no_secrets_and_cannot_reach_anybody(plain_peer, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("DATABASE_URL", "secret")
    with process("Plain", [sys.executable, "-m", "tests.bench.plain_peer"]) as outside:
        names = outside.ask(question("environment"), 1).turns
        assert "MEM0_TELEMETRY" in names
        assert not {"OPENAI_API_KEY", "DATABASE_URL", "LOCI_HOME"} & set(names)
        assert "refused" in outside.ask(question("outside"), 1).turns[0]


def test_a_peer_that_breaks_is_reported_in_its_own_words(plain_peer):
    plain_peer.take_in(NORA)
    with pytest.raises(PeerFailed, match="Plain broke off: RuntimeError: the shelf fell down"):
        plain_peer.ask(question("break"), 1)
    with pytest.raises(PeerFailed, match="the shelf fell down"):
        plain_peer.take_in(NORA)


def test_a_peer_that_does_not_start_is_reported():
    with (
        process("Nobody", [sys.executable, "-m", "tests.bench.nobody"]) as nobody,
        pytest.raises(PeerFailed, match=r"Nobody broke off: .*No module named tests.bench.nobody"),
    ):
        nobody.take_in(NORA)


def test_peers_get_the_very_vectors_loci_has():
    folder = model_build.ensure_built(django_settings.MODELS_DIR)
    theirs = MiniLM(folder / model_build.MODEL_FILE, folder / model_build.TOKENIZER_FILE, threads=1)
    texts = [
        "Salt is on the left.",
        "",
        "Ünïcode 漢字",
        "long " * 400,
        *("word " * n for n in range(9)),
    ]
    ours, _ = embedder().embed(texts)
    np.testing.assert_allclose(theirs.embed(texts), ours, atol=1e-6)


class Known:
    """A system that answers from a list, and takes note of what it was asked to do."""

    def __init__(self, answers):
        self.answers, self.done = answers, []

    def take_in(self, case):
        self.done.append(case.id)
        return 2.0

    def ask(self, question, top_k):
        self.done.append((question.text, top_k))
        return Found(self.answers.get(question.text, ()), 0.25 if top_k > FEW else 0.125)

    def weigh(self):
        return Weight(disk=100, memory=3 * 2**20, database=2**20)


def test_a_system_is_warmed_up_and_then_measured():
    system = Known({"Which parrot was adopted?": ("2/0", "1/1", "1/0")})
    sheet = Sheet()
    sheet.measure(system, [NORA])
    assert system.done[0] == "warm-up"
    asked = [(each.text, hits) for hits in (TOP_K, FEW) for each in NORA.questions]
    assert system.done[2:] == ["nora", *asked]
    report = sheet.report()
    metrics = report["metrics"]["overall"]
    assert report["questions"] == 2
    assert metrics["session_recall@5"]["value"] == 0.5
    assert metrics["turn_recall@5"]["value"] == 0.5
    assert report["latency_ms"] == {"p50": 250.0, "p95": 250.0}
    assert report["latency_ten_ms"] == {"p50": 125.0, "p95": 125.0}
    assert report["ingest"] == {"messages": 4, "seconds": 2.0, "messages_per_s": 2.0}
    assert report["disk_bytes_per_message"] == 25
    assert report["memory_mb"] == {"process_peak": 3, "database": 1}


def test_the_table_has_a_row_a_system_and_its_columns_in_line():
    sheet = Sheet()
    sheet.measure(Known({}), [NORA])
    lines = table("beam", {"Loci 1.0": sheet.report(), "An other": sheet.report()}).splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["Loci 1.0", "An other"]
    assert len({len(line) for line in lines}) == 1
    assert lines[1].endswith("3 + 1")


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_loci_is_one_of_the_systems():
    # Tables of its own start empty: in shared ones a few rows fit into pages others left free.
    with own_schema("bench_peers", keep=False):
        system, sheet = Inside(), Sheet()
        sheet.measure(system, [NORA])
        report = sheet.report()
        assert report["metrics"]["overall"]["turn_recall@5"]["value"] == 1
        assert report["disk_bytes_per_message"] > 0
        assert report["memory_mb"]["process_peak"] > 0
        assert report["memory_mb"]["database"] > 0
        system.take_in(Case("bob", (talk(7, "A parrot stole the salt."),), ()))
        assert system.ask(NORA.questions[0], 10).turns == ("7/0",)


@pytest.fixture
def compare(transactional_db, capsys, settings, tmp_path):
    settings.LOCI_HOME = tmp_path

    def compare(**options):
        path = tmp_path / "locomo.json"
        path.write_text(json.dumps(LOCOMO))
        call_command("bench_peers", data=path, dataset="locomo", **options)
        said = capsys.readouterr()
        return json.loads(said.out.strip().splitlines()[-1]), said.err

    return compare


@pytest.mark.exhaustive
def test_a_peer_that_is_missing_does_not_keep_the_others_from_being_measured(compare):
    report, errors = compare(systems="chroma,loci")
    assert list(report["systems"]) == ["loci"]
    assert report["systems"]["loci"]["questions"] == 3
    assert report["skipped"] == {"no evidence that resolves": 2}
    assert "bench_peers --install" in report["failed"]["chroma"]
    assert "Chroma is not installed" in errors
    assert re.search(r"^Loci \d.* 1\.000 ", errors, re.MULTILINE)


@pytest.mark.exhaustive
def test_nothing_is_left_of_what_was_taken_in(compare):
    compare(systems="loci")
    assert not Drawer.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench%'")
        assert cursor.fetchall() == []


@pytest.mark.exhaustive
def test_what_a_killed_run_left_is_not_measured_with(compare):
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA bench_peers")
        cursor.execute("CREATE TABLE bench_peers.palace_drawer (id bigint)")
    report, _ = compare(systems="loci")
    assert report["systems"]["loci"]["ingest"]["messages"] == 4


def test_a_comparison_of_nothing_says_why(compare):
    with pytest.raises(CommandError, match=r"mem0 is not installed; `manage.py bench_peers"):
        compare(systems="mem0")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"systems": "loci,zep"}, "zep is no system that can be compared; there are loci, chroma"),
        ({"systems": ","}, "Nothing is no system"),
        ({"limit": 0}, "--limit is a number from 1"),
    ],
)
def test_a_choice_that_cannot_be_gets_a_sentence(compare, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        compare(**options)


def test_times_to_the_first_memory_need_what_was_installed(settings, tmp_path):
    settings.LOCI_HOME = tmp_path
    with pytest.raises(CommandError, match="Not installed: loci, mem0, mempalace"):
        call_command("bench_first", "--no-install")
    with pytest.raises(CommandError, match="--runs has to be 1 or more"):
        call_command("bench_first", "--no-install", "--runs", "0")


def test_times_to_the_first_memory_are_a_table():
    figures = {
        "loci": {"packages": 75, "install_s": 61.04, "first_s": 20.0, "second_s": 7.5},
        "mem0": {"packages": 40, "install_s": None, "first_s": 9.0, "second_s": 8.0},
    }
    *_, loci, mem0 = bench_first.table(figures).splitlines()
    assert loci.endswith("| 75 | 61.0 s | 20.0 s | 7.5 s |")
    assert mem0 == "| mem0 | 40 |  | 9.0 s | 8.0 s |"


def test_data_that_are_not_there_get_a_sentence(tmp_path):
    with pytest.raises(CommandError, match="does not exist"):
        call_command("bench_peers", data=tmp_path / "nowhere.json", dataset="locomo")
    with pytest.raises(CommandError, match="Give both --data and --dataset"):
        call_command("bench_peers", data=tmp_path)


def test_other_peoples_vectors_cannot_be_handed_on(settings, tmp_path):
    settings.LOCI_HOME, settings.EMBEDDING_PROVIDER = tmp_path, "openai"
    peer = PEERS["chroma"]
    peer.home.mkdir(parents=True)
    peer.stamp.write_text(peer.digest())
    with pytest.raises(PeerFailed, match="local model only"), peer_process(peer):
        pass


def test_a_peer_installed_by_another_lock_is_not_used(settings, tmp_path):
    settings.LOCI_HOME = tmp_path
    peer = PEERS["mem0"]
    assert not peer.is_installed()
    peer.home.mkdir(parents=True)
    peer.stamp.write_text("another")
    assert not peer.is_installed()


@pytest.mark.exhaustive
def test_packages_that_cannot_be_had_get_a_sentence_and_no_half_is_used(
    settings, tmp_path, monkeypatch
):
    settings.LOCI_HOME = tmp_path
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(CommandError, match=r"mem0 cannot be installed: ERROR: No matching"):
        call_command("bench_peers", install=True, systems="mem0")
    assert not PEERS["mem0"].is_installed()


@pytest.mark.parametrize("peer", PEERS.values(), ids=str)
def test_a_lock_holds_exact_versions_with_hashes_and_no_address(peer):
    project = tomllib.loads((django_settings.BASE_DIR / "pyproject.toml").read_text())
    assert f"{peer.package}=={peer.version()}" in project["dependency-groups"][f"peer-{peer.name}"]
    for line in peer.lock.read_text().splitlines():
        assert re.fullmatch(
            r"[a-z0-9_.-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line
        )
