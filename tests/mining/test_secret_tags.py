"""A message with a secret is tagged as such, kept to the byte, and shown to its owner."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from config.management.commands import find_secrets
from language.transcripts import Transcript, Turn
from palace.mining.pipeline import mine
from palace.models import Drawer
from tests.conversations import START

CARD = "My card is 4111 1111 1111 1111, and I live in Porto."
PLAIN = "The ferry leaves at nine."


@pytest.fixture
def drawers(palace):
    turns = tuple(Turn(str(place), "user", text, START) for place, text in enumerate((CARD, PLAIN)))
    mine(palace, Transcript("api", "one", "", turns))
    return list(Drawer.objects.order_by("position"))


def test_it_is_tagged_without_its_content_and_kept_to_the_byte(drawers, client, alice):
    with_card, plain = drawers
    assert with_card.tags["s"] == ["card"]
    assert "s" not in plain.tags
    assert (with_card.text, plain.text) == (CARD, PLAIN)
    client.force_login(alice)
    page = client.get(with_card.get_absolute_url()).text
    assert "4111 1111 1111 1111" in page
    assert 'Secrets <span class="aaak">@s</span>' in page


def test_a_command_tags_what_was_stored_before_and_can_go_on(drawers, monkeypatch):
    monkeypatch.setattr(find_secrets, "BATCH", 1)
    people = drawers[0].tags.get("p")
    for drawer in drawers:
        drawer.tags.pop("s", None)
        drawer.save()
    said, progress = StringIO(), StringIO()
    call_command("find_secrets", after=drawers[0].pk, stdout=said, stderr=progress)
    assert "Done: 0 messages" in said.getvalue()
    assert f"go on with --after {drawers[1].pk}." in progress.getvalue()
    call_command("find_secrets", stdout=said, stderr=progress)
    assert "Done: 1 messages" in said.getvalue()
    again = Drawer.objects.get(pk=drawers[0].pk)
    assert (again.tags["s"], again.tags.get("p")) == (["card"], people)
    assert again.text == CARD
