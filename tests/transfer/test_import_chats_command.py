"""`manage.py import_chats` as one meets it in a terminal."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import nullcontext

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from config.celery import app
from palace.models import Drawer, ImportJob, Palace
from palace.transfer import import_jobs
from tests.transfer.importers.exports import chatgpt_talk, plain, write_json, write_lines
from tests.transfer.processes import environment


@pytest.fixture
def owner(db):
    return get_user_model().objects.create_superuser("owner", "owner@example.org", "a-password")


@pytest.fixture
def export(tmp_path):
    talks = [chatgpt_talk("Which tea?", "Oolong.", "", conversation_id=f"c{n}") for n in range(3)]
    return write_json(tmp_path / "conversations.json", talks)


def import_chats(*arguments):
    out = io.StringIO()
    call_command("import_chats", *map(str, arguments), stdout=out, stderr=out)
    return re.sub(r"[ \r]+", " ", out.getvalue())


def test_it_shows_a_preview_and_a_receipt(owner, export):
    out = import_chats(export, "--yes")
    assert "conversations.json: ChatGPT export\n" in out
    assert "conversations 3\n" in out
    assert "new 6\n" in out
    assert "skipped: empty message 3\n" in out
    assert "from 2024-06-01 to 2024-06-01\n" in out
    assert "messages in 9\n= stored 6\n+ already there 0\n+ skipped 3\n empty message 3\n" in out
    assert Drawer.objects.filter(palace__owner=owner).count() == 6


def test_what_came_in_is_read_for_facts_at_once(owner, export, queued):
    import_chats(export, "--yes")
    assert queued() == ["learn_facts", "write_episodes"]


def test_the_second_time_all_is_there_already(owner, export):
    import_chats(export, "--yes")
    out = import_chats(export, "--yes")
    assert "new 0\n already here 6\n" in out
    assert "= stored 0\n+ already there 6\n" in out


def test_only_looking_changes_nothing(owner, export):
    assert "new 6\n" in import_chats(export, "--preview")
    assert not ImportJob.objects.exists()
    assert not Drawer.objects.exists()


@pytest.mark.parametrize("answer", ["--preview", "", "broken"])
def test_what_imports_nothing_makes_no_palace(owner, export, tmp_path, answer):
    if answer == "broken":
        export = tmp_path / "diary.doc"
        export.write_text("Dear diary")
    with nullcontext() if answer == "--preview" else pytest.raises(CommandError):
        import_chats(export, "--subject", "ada", *([answer] if answer == "--preview" else []))
    palaces = Palace.objects.filter(subject="ada")
    # Where nobody could be asked the job waits for an answer.
    assert palaces.exists() == (answer == "")
    import_chats(tmp_path / "conversations.json", "--subject", "ada", "--yes")
    assert Drawer.objects.filter(palace=palaces.get()).count() == 6


@pytest.mark.parametrize("user", ["alice", ""])
def test_a_preview_makes_nothing(db, export, user, request):
    """Neither a palace of somebody who has none, nor the owner of a new installation."""
    if user:
        request.getfixturevalue("alice")
    users = get_user_model().objects.count()
    assert "new 6\n" in import_chats(export, "--user", user, "--preview")
    assert not Palace.objects.exists()
    assert get_user_model().objects.count() == users
    import_chats(export, "--user", user, "--yes")
    assert Drawer.objects.filter(palace=Palace.objects.get()).count() == 6


def test_looking_keeps_a_palace_that_was_there(owner, export):
    Palace.objects.create(owner=owner, subject="ada")
    import_chats(export, "--subject", "ada", "--preview")
    assert Palace.objects.filter(subject="ada").exists()


def test_looking_at_a_job_that_has_begun_leaves_it(owner, tmp_path):
    path = write_lines(tmp_path / "a", [plain("Q", conversation_id=f"p{n}") for n in range(3)])
    job = import_jobs.preview(Palace.objects.own(owner), path)
    import_jobs.start(job)
    import_jobs.run_slice(job, seconds=0)
    assert "1 conversations are filed already" in import_chats(path, "--preview")
    assert "= stored 3\n" in import_chats(path)


def test_it_goes_to_whom_one_names(owner, alice, export):
    import_chats(export, "--yes", "--user", "ALICE@example.org")
    import_chats(export, "--yes", "--user", "alice")
    assert Drawer.objects.filter(palace__owner=alice).count() == 6
    assert not Drawer.objects.filter(palace__owner=owner).exists()


def test_an_unknown_user_gets_a_sentence(owner, export):
    with pytest.raises(CommandError, match="no user with the name or address 'nobody'"):
        import_chats(export, "--yes", "--user", "nobody")


def test_the_first_command_of_all_makes_the_owner(db, export):
    import_chats(export, "--yes")
    owner = get_user_model().objects.get()
    assert (owner.is_superuser, owner.has_usable_password()) == (True, False)
    assert Drawer.objects.filter(palace__owner=owner).count() == 6


def test_without_an_owner_it_says_what_to_do(alice, export):
    with pytest.raises(CommandError, match="Start Loci once with `make run`"):
        import_chats(export, "--yes")


def test_a_wrong_file_gets_a_sentence(owner, tmp_path):
    (tmp_path / "diary.doc").write_text("Dear diary")
    with pytest.raises(CommandError, match=r"diary\.doc is no export we know"):
        import_chats(tmp_path / "diary.doc", "--yes")
    with pytest.raises(CommandError, match="There is no file"):
        import_chats(tmp_path / "gone.json", "--yes")
    assert not ImportJob.objects.exists()


@pytest.mark.parametrize("how", ["--yes", "--json"])
def test_a_file_of_which_nothing_can_be_stored_fails(owner, tmp_path, how):
    talk = chatgpt_talk("", " ")
    with pytest.raises(CommandError, match="Nothing was stored: every message was skipped"):
        import_chats(write_json(tmp_path / "a.json", [talk]), how)
    with pytest.raises(CommandError, match="Nothing was imported"):
        import_chats(write_json(tmp_path / "b.json", [talk | {"mapping": {}}]), how)


def test_where_nobody_can_be_asked_it_says_so_and_waits(owner, export):
    with pytest.raises(CommandError, match="Add --yes to import"):
        import_chats(export)
    assert not Drawer.objects.exists()
    assert "= stored 6\n" in import_chats(export, "--yes")


def test_in_the_background_it_is_left_to_the_workers(owner, export):
    with app.connection_for_write() as broker:
        queue = broker.default_channel.client
        before = queue.llen("bulk")
        assert "The import is queued" in import_chats(export, "--yes", "--background")
        assert queue.llen("bulk") == before + 1
    job = ImportJob.objects.get()
    assert (job.status, job.conversations_done) == (ImportJob.Status.RUNNING, 0)
    import_jobs.import_chats(job.pk)
    job.refresh_from_db()
    assert (job.status, job.messages_stored) == (ImportJob.Status.DONE, 6)


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("how", "last"), [("--yes", "stored"), ("--background", "(Redis)")])
def test_with_the_queue_away_what_came_in_is_no_failure(owner, export, tmp_path, how, last):
    done = subprocess.run(
        [sys.executable, "manage.py", "import_chats", export, "--yes", how],
        cwd=settings.BASE_DIR,
        env=environment() | {"REDIS_URL": f"unix://{tmp_path}/no-such-socket"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert last in done.stdout
    assert Drawer.objects.count() == (6 if last == "stored" else 0)
