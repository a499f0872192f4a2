"""The learned reader, chosen by the operator: built, run and read beside the rules."""

from datetime import UTC, datetime, timedelta

import pytest

from language.transcripts import Turn
from llm.errors import EmbedderMisconfigured
from llm.tagging import build
from palace.knowledge.facts import remember
from palace.knowledge.facts.learnt_reading import readings_of
from palace.models import Fact

AT = datetime(2025, 6, 10, 12, tzinfo=UTC)
GERMAN = "Wir sind nach Leiden gezogen, und ich arbeite jetzt als Krankenpfleger in der Klinik."
MISSED = "Our kid got into ETH"


def turn(text, role="user"):
    return Turn("1", role, text, AT)


@pytest.fixture
def learnt(settings):
    settings.FACT_READER = "learnt"


def test_the_rules_read_alone_unless_it_is_chosen():
    assert readings_of([turn("Moved to Leiden last week")]) == []


def test_places_are_those_of_the_message_also_far_into_it(learnt):
    text = "The weather is awful. " * 40 + "Moved up to Whitby last week."
    (reading,) = readings_of([turn(text)])
    assert "Whitby" in [text[one.start : one.end] for one in reading.values]


def test_only_english_and_only_people_are_read(learnt):
    said = [turn(GERMAN), turn("You live in Leiden, as you said.", "assistant"), turn("")]
    assert [one.values for one in readings_of(said)] == [(), (), ()]


def test_what_it_reads_becomes_a_fact_that_the_rules_do_not_find(palace, settings):
    def held(number):
        remember(palace, [Turn(f"{number}", "user", MISSED, AT)])
        return set(Fact.objects.within(palace).values_list("predicate", "object"))

    assert ("studies_at", "ETH") not in held(1)
    settings.FACT_READER = "learnt"
    assert ("studies_at", "ETH") in held(2)


def test_an_ending_in_passing_closes_what_was_known(palace, learnt):
    remember(palace, [Turn("1", "user", "I own a poky flat.", AT)])
    assert Fact.objects.within(palace).filter(object="poky flat", fate="").exists()
    remember(palace, [Turn("2", "user", "Flat's sold, at last.", AT + timedelta(days=90))])
    assert not Fact.objects.within(palace).filter(object="poky flat", fate="").exists()


def test_damaged_weights_are_refused(tmp_path, monkeypatch):
    (tmp_path / "reader.json").write_text((build.LEARNT / "reader.json").read_text())
    (tmp_path / "reader.npz").write_bytes(b"something else")
    monkeypatch.setattr(build, "LEARNT", tmp_path)
    with pytest.raises(EmbedderMisconfigured, match="Reinstall Loci"):
        build.read_learnt()
