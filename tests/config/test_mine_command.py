from __future__ import annotations

from django.core.management import call_command

from palace.models import Drawer
from palace.storage.transcript_filing import file_transcript
from tests.conversations import EVERYTHING


def test_it_mines_what_waits_and_then_has_nothing_to_do(palace, capsys):
    for one in EVERYTHING:
        file_transcript(palace, one)
    call_command("mine", user="alice")
    assert capsys.readouterr().out == "Mined 10 messages.\n"
    assert not Drawer.objects.unmined().exists()
    call_command("mine", user="alice")
    assert capsys.readouterr().out == "Mined 0 messages.\n"
