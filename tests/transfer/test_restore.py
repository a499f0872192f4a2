"""An export put back into an empty palace: all of it, as it was, once, whatever comes between."""

from __future__ import annotations

import hashlib
import json
import zipfile
from contextlib import nullcontext
from itertools import accumulate
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from config.audit import audit_palace
from language.transcripts import Transcript, Turn
from palace.curation import trash
from palace.knowledge.facts.fact_edits import rewrite
from palace.knowledge.facts.fact_extraction import Scope
from palace.knowledge.facts.fact_learning import learn_room, learn_unread
from palace.mining.pipeline import mine_room
from palace.models import (
    Drawer,
    Entity,
    Episode,
    EpisodeVector,
    Fact,
    FactVector,
    ImportJob,
    Palace,
    Passage,
    Posting,
    Room,
    Telling,
    Wing,
)
from palace.recall.request import RecallRequest
from palace.recall.retrieval import recall
from palace.storage.transcript_filing import file_transcript
from palace.transfer import import_jobs
from palace.transfer.import_jobs.whole_palace import Phase
from tests.factories import FactFactory
from tests.transfer.palaces import SPOKEN, TEXTS, lines_of

ALL = (
    *("wings", "entities", "rooms", "closets", "drawers"),
    *("facts", "fact_events", "episodes", "activities"),
)


def run_import(palace, path):
    job = import_jobs.preview(palace, path)
    import_jobs.start(job)
    while not import_jobs.run_slice(job):
        pass
    return job


def everything(path):
    return {name: lines_of(path, name) for name in ALL}


@pytest.fixture
def other(bob):
    return Palace.objects.own(bob)


@pytest.fixture
def waiting(full):
    """Beside what was mined: a message that nobody has read, with its own options of extraction."""
    turn = Turn("w1", "user", "My aunt Ida lives in Trieste.", SPOKEN)
    room = file_transcript(full, Transcript("sdk", "later", "Later", (turn,))).room
    drawer = Drawer.objects.get(room=room)
    Telling.objects.create(
        palace=full, drawer=drawer, by="sdk", agent="coach", run="r-9", metadata={"n": 1}
    )
    return drawer


@pytest.mark.usefixtures("waiting")
def test_all_of_it_is_as_it_was(full, exported, other):
    path = exported(full)
    before = everything(path)
    job = run_import(other, path)
    assert (job.status, job.messages_stored) == (ImportJob.Status.DONE, len(before["drawers"]))
    after = everything(exported(other, "again.zip"))
    own = after["activities"].pop()
    assert own["summary"] == f"Put back a whole palace, with 7 messages: {path.name}."
    # The one that waited has been mined since, by the job: it had not been there.
    mined = [each for each in after["drawers"] if each["message"] == "w1"]
    assert mined[0].pop("mined") is True
    for name in ALL:
        known = {each["id"]: each for each in after[name]}
        for each in before[name]:
            if each.get("message") == "w1":
                assert known[each["id"]]["telling"] == each["telling"]
                assert known[each["id"]]["text"] == each["text"]
            elif each.get("conversation") != "later":
                assert known.get(each["id"]) == each, name


def test_put_back_it_exports_the_same_to_the_byte(full, exported, other):
    path = exported(full)
    run_import(other, path)
    again = exported(other, "again.zip")
    for name in ALL[:-1]:
        assert lines_of(again, name) == lines_of(path, name), name
    assert lines_of(again, "activities")[:-1] == lines_of(path, "activities")
    kept, put_back = (
        json.loads(zipfile.ZipFile(each).read("data/palace.json")) for each in (path, again)
    )
    for name in ("highest_wing", "highest_room", "rejected_areas"):
        assert kept[name]
        assert put_back[name] == kept[name]


def test_what_a_person_placed_is_put_back_as_placed(full, exported, other):
    run_import(other, exported(full))
    settled = Room.objects.within(other).filter(is_settled=True)
    assert list(settled.values_list("number", flat=True)) == [9]


def test_an_area_that_mining_does_not_know_is_none(full, exported, other):
    Room.objects.filter(palace=full, area="Travel").update(area="Unsorted")
    Palace.objects.filter(pk=full.pk).update(rejected_areas=["Travel", "Unsorted"])
    run_import(other, exported(full))
    assert not Room.objects.within(other).exclude(area="").exists()
    other.refresh_from_db()
    assert other.rejected_areas == ["Travel"]


def test_it_is_found_as_it_was_and_nothing_is_read_again(full, exported, other, model_server):
    run_import(other, exported(full))
    assert model_server.requests == []
    for palace in (full, other):
        hits = recall(palace, RecallRequest("Where do I live?")).hits
        assert hits[0].drawer.text == TEXTS[0]
    assert not Drawer.objects.within(other).unmined().exists()
    for kind in (Drawer, Fact, Episode, Passage, FactVector, EpisodeVector):
        of = [kind.objects.filter(palace=palace).count() for palace in (full, other)]
        assert of[0] == of[1] > 0, kind
    posted = Posting.objects.filter(palace=other).values_list("drawers", flat=True)
    written = {key for keys in posted for key in keys}
    assert written == set(Drawer.objects.within(other).values_list("pk", flat=True))


def test_it_lives_on(full, exported, other):
    """Numbers are not given again, facts are corrected, what is in the trash comes back."""
    run_import(other, exported(full))
    new = file_transcript(
        other, Transcript("plain", "new", "", (Turn("1", "user", "A new one.", SPOKEN),))
    )
    assert new.room.number == 12
    held = Fact.objects.within(other).active().get(predicate="lives_in_test")
    rewrite(other, held.memory, "Grandma lives in Faro.", Scope("person"))
    assert Fact.objects.within(other).active().get(memory=held.memory).text.endswith("Faro.")
    assert (
        Fact.objects.within(full).active().get(predicate="lives_in_test").text.endswith("Lisbon.")
    )
    assert trash.restore(other, Drawer.objects.within(other).trashed()) == (trash.Restored(1, ()))
    assert learn_unread(other)


def test_into_a_palace_that_is_not_empty_come_the_messages_alone(full, exported, other):
    path = exported(full)
    file_transcript(other, Transcript("plain", "own", "", (Turn("1", "user", "Mine.", SPOKEN),)))
    job = run_import(other, path)
    assert not import_jobs.is_whole(job)
    assert job.messages_stored == 5
    assert not Fact.objects.within(other).filter(predicate="lives_in_test").exists()


def test_where_something_came_in_after_the_preview_it_is_refused(full, exported, other):
    job = import_jobs.preview(other, exported(full))
    assert import_jobs.is_whole(job)
    file_transcript(other, Transcript("plain", "own", "", (Turn("1", "user", "Mine.", SPOKEN),)))
    import_jobs.start(job)
    assert import_jobs.run_slice(job)
    assert job.status == ImportJob.Status.FAILED
    assert "holds something by now" in job.error
    assert Drawer.objects.within(other).count() == 1
    assert not Wing.objects.within(other).exclude(number=0).exists()


def test_beside_the_palace_it_came_from_its_ids_are_new_ones(full, exported, alice):
    """Programs name a memory without its palace: of one account no two may have one name."""
    twin = Palace.objects.create(owner=alice, subject="ada")
    run_import(twin, exported(full))
    for kind, name in ((Fact, "memory"), (Episode, "uuid")):
        there, here = (
            set(kind.objects.filter(palace=each).values_list(name, flat=True))
            for each in (full, twin)
        )
        assert len(there) == len(here) > 0
        assert not there & here
    new = Fact.objects.within(twin).get(predicate="lives_in_test", retired_at=None)
    assert new.supersedes.memory == new.memory


def forged(path, file, change):
    """The export with one record changed, and every checksum right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = f"data/{file}.jsonl"
    records = [json.loads(line) for line in members[name].decode().split("\n") if line]
    change(records[0])
    members[name] = "".join(json.dumps(each) + "\n" for each in records).encode()
    manifest = json.loads(members["manifest.json"])
    manifest["files"][name]["sha256"] = hashlib.sha256(members[name]).hexdigest()
    members["manifest.json"] = json.dumps(manifest).encode()
    changed = path.with_name("forged.zip")
    with zipfile.ZipFile(changed, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return changed


FORGED = [
    ("wings", {"number": -1}, "number is no whole number"),
    ("wings", {"kind": "castle"}, "kind is none of"),
    ("wings", {"slug": "x" * 300}, "not as Loci writes it"),
    ("rooms", {"wing": 77}, "names a wing that is not there"),
    ("rooms", {"number": 2**40}, "not as Loci writes it"),
    ("drawers", {"said_at": "yesterday"}, "Invalid isoformat"),
    ("drawers", {"said_at": "2024-01-01T00:00:00"}, "said_at names no zone"),
    ("drawers", {"text": "with \0 in it"}, "not as Loci writes it"),
    ("drawers", {"text": "half \ud800"}, "not as Loci writes it"),
    ("drawers", {"metadata": {"a": "\0"}}, "not as Loci writes it"),
    ("drawers", {"role": "wizard"}, "role is none of"),
    ("drawers", {"preference": float("nan")}, "preference is no number"),
    ("drawers", {"tags": {"p": "Ada"}}, "p is not of its kind"),
    ("drawers", {"id": "one"}, "badly formed"),
    ("drawers", {"mentions": [{"entity": {"kind": "person", "slug": "?"}}]}, "no whole number"),
    ("facts", {"evidence": [{"start": 0}]}, "is not of its kind"),
    ("facts", {"supersedes": str(uuid4())}, "supersedes a fact that is not before it"),
    ("facts", {"subject": None}, "subject is not of its kind"),
    ("facts", {"fate": "", "retired_at": "2024-01-01T00:00:00+00:00"}, "not as Loci writes it"),
    ("episodes", {"messages": "many"}, "messages is no whole number"),
    ("activities", {"detail": []}, "detail is not of its kind"),
]


@pytest.mark.some(6)
@pytest.mark.parametrize(("file", "change", "sentence"), FORGED)
def test_a_record_that_loci_did_not_write_is_refused_and_nothing_stays(
    full, exported, other, file, change, sentence
):
    path = forged(exported(full), file, lambda record: record.update(change))
    job = run_import(other, path)
    assert job.status == ImportJob.Status.FAILED
    assert sentence in job.error
    assert "Nothing was imported" in job.error
    for kind in (Wing, Room, Drawer, Fact, Episode):
        assert not kind.objects.filter(palace=other).exists()


def test_the_command_puts_it_back_for_somebody_who_is_spoken_of(full, exported, bob, capsys):
    path = exported(full)
    call_command("import_chats", path, user="bob", subject="ada", yes=True)
    put_back = Palace.objects.get(owner=bob, subject="ada")
    assert Drawer.objects.within(put_back).count() == Drawer.objects.within(full).count()
    said = capsys.readouterr().out
    assert "The palace is empty: it becomes as this one was (2 wings, 3 rooms, " in said


def test_the_pages_say_what_comes_back(full, exported, other, client, bob):
    client.force_login(bob)
    job = import_jobs.preview(other, exported(full))
    page = client.get(job.get_absolute_url()).text
    assert "Your palace is empty, so this one is restored exactly as it was" in page
    assert "3 rooms" in page
    import_jobs.start(job)
    while not import_jobs.run_slice(job):
        pass
    receipt = client.get(job.get_absolute_url()).text
    assert "Your palace is as that one was" in receipt
    assert "Where it went" in receipt


def test_facts_and_episodes_come_back_without_any_message(palace, exported, other):
    fact = FactFactory(subject__palace=palace)
    commit_episode(palace)
    assert not Drawer.objects.exists()
    path = exported(palace)
    job = run_import(other, path)
    assert (job.status, job.error, job.messages_stored) == (ImportJob.Status.DONE, "", 0)
    assert Fact.objects.within(other).get().text == fact.text
    assert Entity.objects.filter(palace=other).get().name == fact.subject.name
    assert Episode.objects.within(other).count() == 1


def commit_episode(palace):
    now = timezone.now()
    Episode.objects.create(
        palace=palace,
        conversation="somewhere else",
        summary="We chose blue.",
        made_by=Episode.Maker.CALLER,
        created_at=now,
        updated_at=now,
    )


NOTHING = "There is not one message in it, so there is nothing to import."


@pytest.mark.parametrize("is_empty", [True, False])
def test_an_export_of_nothing_is_taken_back_and_said_to_hold_nothing(
    palace, exported, other, client, bob, capsys, is_empty
):
    path = exported(palace)
    if not is_empty:
        turn = Turn("w1", "user", "My aunt Ida lives in Trieste.", SPOKEN)
        file_transcript(other, Transcript("sdk", "later", "Later", (turn,)))
    client.force_login(bob)
    page = client.get(import_jobs.preview(other, path).get_absolute_url()).text
    assert NOTHING in page
    assert "Start the import" not in page
    for answer in ("--yes", "--preview"):
        fails = pytest.raises(CommandError, match="Nothing was imported")
        with fails if answer == "--yes" else nullcontext():
            call_command("import_chats", str(path), "--user", bob.username, answer)
        assert NOTHING in capsys.readouterr().out
    assert not ImportJob.objects.exists()
    assert Drawer.objects.filter(palace=other).exists() != is_empty


def test_facts_without_a_message_can_be_restored_in_the_browser(
    palace, exported, other, client, bob
):
    FactFactory(subject__palace=palace)
    client.force_login(bob)
    page = client.get(import_jobs.preview(other, exported(palace)).get_absolute_url()).text
    assert "Start the import" in page
    assert "nothing" not in page.partition("What is in it")[2].partition("Start the import")[0]


def test_a_palace_larger_than_the_quota_is_not_put_back(full, exported, other, settings):
    path = exported(full)
    settings.QUOTA_MESSAGES = 2
    job = run_import(other, path)
    assert job.status == ImportJob.Status.FAILED
    assert "may hold 2 messages" in job.error
    assert not Drawer.objects.filter(palace=other).exists()
    assert not Room.objects.filter(palace=other).exists()


@pytest.mark.parametrize("is_empty", [True, False])
def test_what_only_an_agent_finds_stays_with_it(full, exported, other, is_empty):
    turn = Turn("k1", "user", "My cousin Otto lives in Ghent.", SPOKEN, only_for="butler")
    file_transcript(full, Transcript("sdk", "kin", "Kin", (turn,)))
    path = exported(full)
    if not is_empty:
        turns = (Turn("1", "user", "Mine.", SPOKEN),)
        file_transcript(other, Transcript("plain", "own", "", turns))
    run_import(other, path)
    agents = Drawer.objects.within(other).exclude(agent="").values_list("text", "agent")
    assert list(agents) == [("My cousin Otto lives in Ghent.", "butler")]
    for room in Room.objects.within(other):
        mine_room(room)
        learn_room(room)
    facts = Fact.objects.within(other).active().filter(text__contains="Ghent")
    assert set(facts.values_list("agent", flat=True)) == {"butler"}


def test_the_page_and_the_caller_see_how_far_a_restore_is(full, exported, other, client, bob):
    client.force_login(bob)
    job = import_jobs.preview(other, exported(full))
    import_jobs.start(job)
    seen, pages = [], []

    def look(progress):
        seen.append(progress)
        pages.append(client.get(job.get_absolute_url()).text)

    while not import_jobs.run_slice(job, on_progress=look):
        pass
    written = [each for each in seen if each.phase == Phase.WRITING]
    whole = job.preview["whole"]
    assert [each.file for each in written] == [name for name in ALL if whole.get(name)]
    assert [each.done for each in written] == list(accumulate(whole[e.file] for e in written))
    assert {each.total for each in written} == {written[-1].done} == {sum(whole.values())}
    drawers = next(place for place, each in enumerate(seen) if each.file == "drawers")
    total = seen[drawers].total
    assert f"Writing records: drawers: {seen[drawers].done} of {total} rows" in pages[drawers]
    assert f'value="{seen[drawers].done}"' in pages[drawers]
    later = {each.phase: each.total for each in seen[len(written) :]}
    assert later[Phase.INDEXING] == Drawer.objects.within(other).count()
    assert later[Phase.EMBEDDING] == Fact.objects.within(other).count() + whole["episodes"]
    assert seen[-1].done == seen[-1].total
    assert any("Indexing messages: 0 of" in page for page in pages)
    assert "Writing records" not in client.get(job.get_absolute_url()).text


def wrong_in(palace):
    return {each.check: each.wrong for each in audit_palace(palace) if each.wrong}


def test_killed_before_it_is_indexed_it_is_as_whole_as_it_was(full, exported, other):
    class Killed(BaseException):
        """What nobody catches, as a kill."""

    def die(progress):
        if progress.phase == Phase.INDEXING:
            raise Killed

    job = import_jobs.preview(other, exported(full))
    import_jobs.start(job)
    with pytest.raises(Killed):
        import_jobs.run_slice(job, on_progress=die)
    assert Drawer.objects.within(other).filter(mined_at=None).count() > 3
    # What was made up of it is not all true.
    assert wrong_in(other) == wrong_in(full)
    while not import_jobs.run_slice(job):
        pass
    assert wrong_in(other) == wrong_in(full)


def test_without_redis_a_restore_goes_on(full, exported, other, settings, tmp_path):
    job = import_jobs.preview(other, exported(full))
    import_jobs.start(job)
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": f"unix://{tmp_path}/nobody.sock",
        }
    }
    while not import_jobs.run_slice(job):
        pass
    assert import_jobs.progress(job).restoring is None
    assert job.status == ImportJob.Status.DONE
