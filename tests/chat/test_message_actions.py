"""Remember, forget, edit, attach, off the record: what one does with messages, and by whom."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from chat import replies
from chat.message_memory import State, memory_of
from chat.mining_queue import remember
from chat.models import Conversation, Message
from chat.replies import LARGEST_FILE, Choices, NothingToEdit, StillWriting
from chat.views.message_actions import POLLS_S
from language.transcripts import Transcript, Turn
from palace.curation.retention import Keeping, set_keeping
from palace.knowledge.facts.fact_learning import learn_unread
from palace.mining.pipeline import mine
from palace.models import Drawer, Fact, RecollectionTrace
from palace.recall import RecallRequest, recall
from tests.chat.conftest import current, finished, rest, say, start
from tests.model_server import Slow

HTMX = {"HX-Request": "true"}
MOVED = "I just moved to Porto, near the aquarium."
FILE = "# Bread\r\n\tThe starter is called Ottokar.\n\n"


@pytest.fixture
def moved(palace, model):
    """A question that states a fact, mined and learnt."""
    conversation = start(palace, MOVED)
    finished(conversation)
    remember(conversation)
    learn_unread(palace)
    return current(conversation).first()


def off_the_record(palace, text, *, recalls=True):
    chosen = Choices(recalls=recalls, off_record=True)
    return replies.start(palace, None, text, key=uuid.uuid4(), choices=chosen)


def memory_address(message):
    return reverse("message_memory", args=[message.uuid])


def fact_address(message, fact):
    return reverse("message_fact", args=[message.uuid, fact.memory])


def do(client, message, what, **headers):
    return client.post(memory_address(message), {"do": what}, headers=headers or None)


def test_off_the_record_nothing_enters_the_palace(furnished, model):
    before = Drawer.objects.count(), Fact.objects.count()
    conversation = off_the_record(furnished, f"{MOVED} Where does my sister Nora work?")
    reply = finished(conversation)
    conversation = rest(conversation)
    assert (conversation.mine_due_at, remember(conversation)) == (None, 0)
    other = start(furnished, "Where do I live now, and since when?")
    finished(other)
    assert not Drawer.objects.filter(conversation=str(conversation.uuid)).exists()
    assert (Drawer.objects.count(), Fact.objects.count()) == before
    # The palace was read for it, but what was asked is nowhere in it.
    assert "works at the aquarium" in model.requests[0].prompt
    assert reply.recollection is None
    assert not RecollectionTrace.objects.filter(query__contains="Porto").exists()


def test_without_a_model_nothing_said_off_the_record_is_said_to_be_noted(furnished):
    assert "Noted" not in finished(off_the_record(furnished, MOVED)).text


def test_back_on_the_record_what_was_said_off_it_stays_out_unless_asked(palace, model):
    conversation = off_the_record(palace, "My badge says K-77.")
    finished(conversation)
    replies.choose(conversation, Choices())
    say(conversation, "The kettle is on.")
    finished(conversation)
    rest(conversation)
    assert {d.text for d in Drawer.objects.all()} == {"The kettle is on.", "OK."}
    room = Drawer.objects.first().room
    assert "badge" not in room.title
    replies.choose(conversation, Choices(), with_earlier=True)
    rest(conversation)
    texts = [drawer.text for drawer in Drawer.objects.in_order()]
    assert texts == ["My badge says K-77.", "OK.", "The kettle is on.", "OK."]


def test_off_the_record_is_said_on_the_page_and_chosen_in_the_form(alices, model, palace):
    sent = {"text": "Between us", "key": str(uuid.uuid4()), "off_record": "1", "no_recall": "1"}
    alices.post(reverse("chat"), sent)
    conversation = Conversation.objects.get()
    finished(conversation)
    assert (conversation.off_record, conversation.recalls) == (True, False)
    page = alices.get(conversation.get_absolute_url()).text
    assert "Nothing said here enters your palace" in page
    assert "off the record" in alices.get(reverse("chat")).text
    alices.post(reverse("choose", args=[conversation.uuid]), {})
    conversation.refresh_from_db()
    assert (conversation.off_record, conversation.recalls) == (False, True)
    assert "Off the record." not in alices.get(conversation.get_absolute_url()).text


def test_a_conversation_without_memory_recalls_nothing(furnished, model):
    conversation = replies.start(
        furnished, None, "Where is Nora?", key=uuid.uuid4(), choices=Choices(recalls=False)
    )
    reply = finished(conversation)
    assert "memory_context" not in model.requests[-1].prompt
    assert (reply.recollection, reply.note) == (None, "")
    assert remember(conversation) == 2


def test_what_was_learnt_is_undone_learnt_again_and_edited(alices, moved, palace):
    [fact] = memory_of(moved).facts
    assert fact.text == "User lives in Porto"
    page = alices.get(moved.conversation.get_absolute_url()).text
    assert "Memory updated: You live in Porto" in page
    undone = alices.post(fact_address(moved, fact), {"do": "undo"}, headers=HTMX).text
    assert "Memory update undone" in undone
    assert not Fact.objects.active().exists()
    assert memory_of(moved).state == State.KEPT
    again = alices.post(fact_address(moved, fact), {"do": "redo"}, headers=HTMX).text
    assert "Memory updated: You live in Porto" in again
    sent = {"do": "edit", "text": "You live in Braga"}
    response = alices.post(fact_address(moved, fact), sent)
    assert response.url.endswith(f"#{moved.anchor}")
    assert [f.text for f in Fact.objects.active()] == ["User lives in Braga"]
    refused = alices.post(fact_address(moved, fact), {"do": "edit", "text": " "}, headers=HTMX)
    assert "Write what it should say" in refused.text


def test_a_fact_that_was_known_before_is_no_update(palace, model):
    turn = Turn("1", "user", MOVED, timezone.now() - timedelta(days=1))
    mine(palace, Transcript("plain", "porto", "Porto", (turn,)))
    conversation = start(palace, "I live in Porto.")
    finished(conversation)
    remember(conversation)
    learn_unread(palace)
    assert memory_of(current(conversation).first()).facts == ()


def test_a_message_is_remembered_at_once(alices, model, palace, choices):
    choices(auto_mine=False)
    conversation = start(palace, MOVED)
    finished(conversation)
    question, reply = current(conversation)
    text = do(alices, question, "remember", **HTMX).text
    assert "Memory updated: You live in Porto" in text
    assert "Kept" in text
    do(alices, question, "remember")
    assert [drawer.text for drawer in Drawer.objects.all()] == [MOVED]
    assert memory_of(reply).state == State.WAITING
    # What comes later finds its place before it.
    do(alices, reply, "remember")
    assert [drawer.text for drawer in Drawer.objects.in_order()] == [MOVED, "OK."]


def test_what_is_remembered_out_of_turn_keeps_the_order_of_the_conversation(palace, model, alices):
    conversation = start(palace, "One.")
    finished(conversation)
    say(conversation, "Two.")
    last = finished(conversation)
    do(alices, last, "remember")
    rest(conversation)
    found = [drawer.external_id for drawer in Drawer.objects.in_order()]
    assert found == [str(message.uuid) for message in current(conversation)]


def test_a_message_off_the_record_is_remembered_alone(alices, model, palace):
    conversation = off_the_record(palace, "My badge says K-77.")
    finished(conversation)
    do(alices, current(conversation).first(), "remember")
    assert [drawer.text for drawer in Drawer.objects.all()] == ["My badge says K-77."]


def test_a_message_is_forgotten_with_what_rests_on_it_alone_and_taken_back(alices, moved):
    text = do(alices, moved, "forget", **HTMX).text
    assert "it is in the trash" in text
    assert not Fact.objects.active().exists()
    assert [drawer.text for drawer in Drawer.objects.kept()] == ["OK."]
    do(alices, moved, "forget")
    do(alices, moved, "undo")
    assert {drawer.text for drawer in Drawer.objects.kept()} == {MOVED, "OK."}
    assert [fact.text for fact in Fact.objects.active()] == ["User lives in Porto"]
    moved.refresh_from_db()
    assert moved.text == MOVED


def test_what_a_keeping_rule_moved_to_the_trash_is_told_so(alices, moved):
    drawer = Drawer.objects.get(text=MOVED)
    set_keeping(drawer.room.wing, Keeping(never=("Porto", "OK")))
    page = alices.get(moved.conversation.get_absolute_url()).text
    assert "The keeping rule of its wing moved it to the trash" in page
    assert "Forgotten: it is in the trash" not in page


def test_what_is_forgotten_before_it_was_mined_is_never_mined(alices, model, palace):
    conversation = start(palace, MOVED)
    finished(conversation)
    question = current(conversation).first()
    do(alices, question, "forget")
    rest(conversation)
    assert [drawer.text for drawer in Drawer.objects.all()] == ["OK."]
    do(alices, question, "undo")
    rest(conversation)
    assert [drawer.text for drawer in Drawer.objects.in_order()] == [MOVED, "OK."]


def test_the_page_asks_what_was_learnt_ever_less_often_and_then_stops(alices, model, palace):
    conversation = start(palace, MOVED)
    finished(conversation)
    question = current(conversation).first()
    page = alices.get(conversation.get_absolute_url()).text
    assert page.count("load delay:") == 1
    for polls in range(len(POLLS_S)):
        part = alices.get(memory_address(question), {"polls": polls}, headers=HTMX).text
        assert f"load delay:{POLLS_S[polls]}s" in part
        assert f"polls={polls + 1}" in part
    for polls in (len(POLLS_S), 99, "x", -1):
        part = alices.get(memory_address(question), {"polls": polls}, headers=HTMX).text
        assert "hx-get" not in part
    assert alices.get(memory_address(question)).url.endswith(question.anchor)
    remember(conversation)
    learn_unread(palace)
    part = alices.get(memory_address(question), {"polls": 1}, headers=HTMX).text
    assert "hx-get" not in part
    assert "Memory updated" in part
    Message.objects.update(said_at=timezone.now() - timedelta(hours=1), mined_at=None)
    Drawer.objects.all().delete()
    assert "load delay:" not in alices.get(conversation.get_absolute_url()).text


def test_an_edit_asks_again_and_keeps_the_earlier_version(alices, moved, palace, model):
    conversation = moved.conversation
    say(conversation, "And the weather?")
    finished(conversation)
    model.answer("Braga it is.")
    sent = {"text": "I just moved to Braga.", "key": str(uuid.uuid4())}
    where = reverse("edit_message", args=[moved.uuid])
    form = alices.get(where).text
    assert MOVED in form
    assert "the 3 messages after it" in form
    response = alices.post(where, sent)
    finished(conversation)
    assert [m.text for m in current(conversation)] == ["I just moved to Braga.", "Braga it is."]
    assert response.url.endswith(f"#{current(conversation).first().anchor}")
    assert not Drawer.objects.kept().exists()
    assert not Fact.objects.active().exists()
    said = [m["content"] for m in model.requests[-1].body["messages"][1:]]
    assert said == ["I just moved to Braga."]
    earlier = alices.get(reverse("earlier_versions", args=[conversation.uuid])).text
    for text in (MOVED, "And the weather?"):
        assert text in earlier
    # The form sent twice, and a second tab that still shows the old message.
    assert alices.post(where, sent).status_code == 302
    late = alices.post(where, {"text": "Faro.", "key": str(uuid.uuid4())})
    assert late.status_code == 400
    assert "Faro." in late.text
    assert current(conversation).count() == 2


def test_an_edit_waits_for_the_reply_that_is_being_written(palace, model):
    model.answer(Slow(30))
    conversation = start(palace, "Hello")
    with pytest.raises(StillWriting):
        replies.edit(current(conversation).first(), "Hi", key=uuid.uuid4())
    model.stopped.set()
    finished(conversation)
    reply = current(conversation).last()
    reply.conversation = conversation
    with pytest.raises(NothingToEdit):
        replies.edit(reply, "Hi", key=uuid.uuid4())


def test_the_title_follows_an_edit_of_the_first_message_unless_it_was_given(palace, model):
    conversation = start(palace, "Hello there")
    finished(conversation)
    say(conversation, "And the weather?")
    finished(conversation)

    def edit(place, text):
        replies.edit(current(conversation)[place], text, key=uuid.uuid4())
        finished(conversation)
        conversation.refresh_from_db()
        return conversation.title

    assert edit(2, "And the bees?") == "Hello there"
    assert edit(0, "Hello") == "Hello"
    Conversation.objects.update(title="Greetings")
    assert edit(0, "Good evening") == "Greetings"


def test_words_said_again_after_an_edit_are_new(palace, model):
    key = uuid.uuid4()
    conversation = start(palace, "Hello", key=key)
    finished(conversation)
    replies.edit(current(conversation).first(), "Hi", key=uuid.uuid4())
    finished(conversation)
    say(conversation, "Hello", key=key)
    finished(conversation)
    assert [m.text for m in current(conversation)] == ["Hi", "OK.", "Hello", "OK."]


def test_a_text_file_is_sent_kept_and_found_to_the_byte(alices, model, palace):
    upload = SimpleUploadedFile("C:\\notes\\bread.md", FILE.encode())
    sent = {
        "text": "I live in Porto. What is it called?",
        "key": str(uuid.uuid4()),
        "files": upload,
    }
    alices.post(reverse("chat"), sent)
    conversation = Conversation.objects.get()
    finished(conversation)
    file, question, _reply = current(conversation)
    assert (file.text, file.file_name, question.text) == (FILE, "bread.md", sent["text"])
    said = [m["content"] for m in model.requests[-1].body["messages"][1:]]
    assert said == [f"File “bread.md”:\n\n{FILE}", question.text]
    page = alices.get(conversation.get_absolute_url()).text
    assert "bread.md" in page
    assert "Ottokar" in page
    rest(conversation)
    learn_unread(palace)
    drawer = Drawer.objects.get(text=FILE)
    assert (drawer.role, drawer.metadata["file"]) == ("system", "bread.md")
    assert "bread.md" not in drawer.room.wing.name
    found = recall(palace, RecallRequest("What is the starter called?"))
    assert drawer.pk in {hit.drawer.pk for hit in found.hits}


def test_a_file_sent_by_htmx_comes_back_with_the_message(alices, model, palace):
    conversation = start(palace, "Hello")
    finished(conversation)
    upload = SimpleUploadedFile("long.txt", b"word " * 30_000)
    sent = {"text": "Read it", "key": str(uuid.uuid4()), "files": upload, "seen": "1"}
    response = alices.post(reverse("say", args=[conversation.uuid]), sent, headers=HTMX)
    assert response.text.count("<article") == 3
    finished(conversation)
    # Longer than what is read of earlier messages, it is read all the same.
    assert "long.txt" in model.requests[-1].prompt


def test_facts_are_not_learnt_from_a_file(palace, model):
    file = replies.TextFile("diary.txt", "I live in Lisbon.")
    conversation = replies.start(palace, None, "Read this", key=uuid.uuid4(), files=[file])
    finished(conversation)
    remember(conversation)
    learn_unread(palace)
    assert not Fact.objects.exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\x00a", "not a text file"),
        (b"a\0b", "cannot be stored"),
        (b"x" * (LARGEST_FILE + 1), "up to 200 kB"),
    ],
)
def test_a_file_that_is_no_text_is_refused_and_the_words_stay(alices, content, sentence):
    sent = {"text": "Read it", "key": str(uuid.uuid4())}
    sent["files"] = SimpleUploadedFile("a.bin", content)
    response = alices.post(reverse("chat"), sent)
    assert response.status_code == 400
    assert sentence in response.text
    assert "Read it" in response.text
    assert not Conversation.objects.exists()


def test_at_most_five_files_at_once(alices):
    files = [SimpleUploadedFile(f"{place}.txt", b"a") for place in range(6)]
    sent = {"text": "Read them", "key": str(uuid.uuid4()), "files": files}
    assert "at most 5" in alices.post(reverse("chat"), sent).text


def test_a_conversation_is_searched(alices, model, palace):
    conversation = start(palace, "The otters sleep & float.")
    finished(conversation)
    where = conversation.get_absolute_url()
    page = alices.get(where, {"find": "OTTERS float"}).text
    assert "1 message with" in page
    assert "<mark>otters</mark> sleep &amp; <mark>float</mark>." in page
    assert "No message has" in alices.get(where, {"find": "%"}).text


def test_what_is_found_in_a_conversation_is_cut_between_words(alices, model, palace):
    conversation = start(palace, f"{'Seaweed drifts. ' * 20}Otters sleep. {'Waves rock. ' * 40}")
    finished(conversation)
    page = alices.get(conversation.get_absolute_url(), {"find": "otters"}).text
    found = re.search(r"…\xa0(.*?)<mark>Otters</mark>(.*?)\xa0…", page)
    assert found[1].startswith(("Seaweed ", "drifts. "))
    assert found[2].endswith((" Waves", " rock."))


def test_a_message_is_copied_to_the_byte(alices, model, palace):
    text = "  <b>tags</b> & 🏛️\n"
    conversation = start(palace, text)
    finished(conversation)
    response = alices.get(reverse("message_text", args=[current(conversation).first().uuid]))
    assert response.content == text.encode()
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_reply_that_only_quotes_the_palace_is_not_remembered(alices, furnished):
    conversation = off_the_record(furnished, "Where does my sister Nora work?")
    reply = finished(conversation)
    assert memory_of(reply).state == State.NONE
    do(alices, reply, "remember")
    assert not Drawer.objects.filter(conversation=str(conversation.uuid)).exists()


def test_unknown_acts_and_facts_of_other_messages_are_not_found(alices, moved, palace):
    assert do(alices, moved, "burn").status_code == 404
    reply = current(moved.conversation).last()
    [fact] = memory_of(moved).facts
    assert alices.post(fact_address(reply, fact), {"do": "undo"}).status_code == 404
    assert alices.get(reverse("edit_message", args=[reply.uuid])).status_code == 404
