from __future__ import annotations

from django.core.management import call_command

from palace.mining.mine import mine
from palace.models import Drawer, Passage, Posting
from palace.recall.recall import recall
from tests.talk import EVERYTHING


def test_everything_derived_can_be_made_again(palace, alice):
    for one in EVERYTHING:
        mine(palace, one)
    question = "Which wire overheated, and who bakes bread?"
    before = [(hit.pointer, hit.score) for hit in recall(palace, question, top_k=10).hits]
    Posting.objects.all().delete()
    Passage.objects.all().delete()
    Drawer.objects.update(terms=0, preference=0)
    call_command("reindex", user=alice.username, verbosity=0)
    assert [(hit.pointer, hit.score) for hit in recall(palace, question, top_k=10).hits] == before


def test_doing_it_twice_changes_nothing(palace, alice):
    mine(palace, EVERYTHING[0])
    call_command("reindex", user=alice.username)
    first = Posting.objects.count(), Passage.objects.count()
    call_command("reindex", user=alice.username)
    assert (Posting.objects.count(), Passage.objects.count()) == first
