"""Scenarios for facts: read strictly, scored fairly, played through the product."""

from __future__ import annotations

import json
from datetime import date

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench import fact_scenarios
from bench.fact_scenarios import DEV, PARTS, SET_ASIDE, BadScenario, Expected, Found, Scenario, read
from bench.management.commands.bench_facts import by_tag, reliability, report, score, share
from bench.runs import drop_schema, schemas
from tests.model_server import CHAT

MESSAGE = {"role": "user", "at": "2025-03-01T10:00:00+01:00", "text": "I live in Porto."}
LINE = {"id": "one", "tags": ["place"], "messages": [MESSAGE]}
PORTO = Expected(("User",), ("lives_in",), ("porto",))
LYON = Expected(("User",), ("lives_in",), ("Lyon",), how=("superseded",))


def scenario(*active, retired=(), may=(), tags=("place",)):
    return Scenario("one", tags, (), active, retired, may)


def found(text, predicate="lives_in", subject="User", **more):
    return Found(subject, predicate, text.split()[-1], text, **more)


@pytest.fixture
def written(tmp_path):
    def write(*lines):
        path = tmp_path / "part.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return path

    return write


# Reading


def test_a_line_becomes_a_scenario(written):
    fact = {"subject": ["User"], "predicate": ["lives_in"], "words": ["Porto"]}
    gone = {**fact, "words": ["Lyon"], "how": ["superseded"], "valid_to": "2025-02"}
    [one] = read(written({**LINE, "active": [fact], "retired": [gone], "may": [fact]}))
    assert one.messages[0].said_at.isoformat() == MESSAGE["at"]
    assert one.active == (Expected(("User",), ("lives_in",), ("Porto",)),)
    assert one.retired[0].how == ("superseded",)
    assert one.retired[0].valid_to == "2025-02"


def test_messages_that_are_joined_are_sent_at_once(written):
    joined = {**MESSAGE, "joined": True}
    [one] = read(written({**LINE, "messages": [joined, joined, MESSAGE, joined]}))
    assert [len(call) for call in one.calls()] == [2, 2]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"tags": []}, "no tags"),
        ({"messages": []}, "one to 5 messages"),
        ({"messages": [{**MESSAGE, "role": "boss"}]}, "'boss'"),
        ({"messages": [{**MESSAGE, "at": "2025-03-01T10:00:00"}]}, "offset"),
        ({"messages": [{**MESSAGE, "at": "yesterday"}]}, "yesterday"),
        ({"messages": [{**MESSAGE, "text": " "}]}, "`text`"),
        ({"actively": []}, "'actively'"),
        ({"active": [{"subject": ["User"]}]}, "predicate"),
        ({"active": [{"subject": "User", "predicate": ["name"]}]}, "list of texts"),
        ({"retired": [{"subject": ["User"], "predicate": ["name"]}]}, "`how`"),
        ({"retired": [{"subject": ["a"], "predicate": ["b"], "how": ["lost"]}]}, "`how`"),
        ({"active": [{"subject": ["a"], "predicate": ["b"], "valid_from": "May"}]}, "'May'"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(written, wrong, why):
    with pytest.raises(BadScenario) as caught:
        read(written(LINE, {**LINE, "id": "two", **wrong}))
    assert "line 2" in str(caught.value)
    assert why in str(caught.value)


def test_an_id_is_used_once(written):
    with pytest.raises(BadScenario, match="line 2: one was there before"):
        read(written(LINE, LINE))


def test_what_is_no_json_is_said_with_its_line(tmp_path):
    path = tmp_path / "part.jsonl"
    path.write_text("{")
    with pytest.raises(BadScenario, match="line 1"):
        read(path)


# The scenarios themselves


def test_the_parts_are_of_use_and_share_nothing():
    """The part for development may grow; what is set aside stays large enough to say something."""
    dev, aside = (read(PARTS[part]) for part in (DEV, SET_ASIDE))
    assert len(aside) >= 70
    assert len(dev) >= 2 * len(aside)
    assert {one.id for one in dev}.isdisjoint(one.id for one in aside)
    texts = [{message.text for one in part for message in one.messages} for part in (dev, aside)]
    assert texts[0].isdisjoint(texts[1])


@pytest.mark.parametrize("part", PARTS)
def test_a_good_third_holds_nothing_or_traps(part):
    scenarios = read(PARTS[part])
    silent = [one for one in scenarios if not one.active or "trap" in one.tags]
    assert len(silent) >= len(scenarios) / 3


@pytest.mark.parametrize("part", PARTS)
def test_messages_are_sent_in_order(part):
    for one in read(PARTS[part]):
        times = [message.said_at for message in one.messages]
        assert times == sorted(times), one.id


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_expected_and_allowed_to_be_gone_alike(part):
    """What must be held may be what must be retired only if a word or a date differs."""
    for one in read(PARTS[part]):
        for gone in one.retired:
            bare = Expected(gone.subject, gone.predicate, gone.words)
            assert bare not in one.active, one.id


# Scoring


def test_what_is_expected_matches_in_whatever_case():
    one = score(scenario(PORTO), [found("User lives in PORTO")])
    assert len(one.matched) == 1
    assert not one.missed + one.extra


@pytest.mark.parametrize(
    ("words", "text", "holds"),
    [
        (("art",), "User likes art", True),
        (("art",), "User likes Bartok", False),
        (("art",), "User likes artists", False),
        (("art*",), "User likes artists", True),
        (("cat|kitten",), "User owns a kitten", True),
        (("new york",), "User lives in New York", True),
        (("1.93*",), "User is 1.93m tall", True),
        (("1.93",), "User is 1493 tall", False),
        (("senior", "engineer"), "User is an engineer", False),
        (("Malmö",), "User lives in malmö.", True),
    ],
)
def test_words_are_whole_unless_they_say_otherwise(words, text, holds):
    expected = Expected(("User",), ("*",), words)
    assert bool(score(scenario(expected), [found(text)]).matched) is holds


@pytest.mark.parametrize(
    "other",
    [
        found("User lives in Porto", subject="Ana"),
        found("User lives in Porto", predicate="visited"),
        found("User lives in Porto no more"),
        found("User lives in Porto", stance="negative"),
    ],
)
def test_who_what_and_how_must_fit(other):
    expected = Expected(("User",), ("lives_in",), ("Porto",), ("no more",), ("positive",))
    one = score(scenario(expected), [other])
    assert one.missed == (expected,)
    assert one.extra == (other,)


def test_names_may_stand_for_any_characters():
    expected = Expected(("*sister*",), ("works_*",), ("vet",))
    assert score(scenario(expected), [found("at a vet", "works_at", "User's sister")]).matched


def test_the_second_that_says_the_same_is_one_too_many():
    one = score(scenario(PORTO), [found("in Porto"), found("still in Porto")])
    assert (len(one.matched), len(one.extra)) == (1, 1)


def test_one_fact_may_say_two_things_at_once():
    role = Expected(("User",), ("works_*",), ("engineer",))
    employer = Expected(("User",), ("works_*",), ("Google",))
    merged = found("User works as an engineer at Google", "works_at")
    one = score(scenario(role, employer), [merged])
    assert one.shared == (employer,)
    assert not one.missed
    assert report([one])["recall"]["value"] == 1
    assert report([one])["precision"]["n"] == 1


def test_facts_are_paired_so_that_most_match():
    """The first could take either fact; the second only one of them."""
    any_pet = Expected(("User",), ("has_pet",))
    dog = Expected(("User",), ("has_pet",), ("dog",))
    facts = [found("a dog", "has_pet"), found("a cat", "has_pet")]
    assert len(score(scenario(any_pet, dog), facts).matched) == 2


def test_what_may_be_there_counts_neither_way():
    event = found("User moved to Porto", "did")
    may = Expected(("User",), ("did",))
    one = score(scenario(PORTO, may=[may]), [found("in Porto"), event])
    assert one.allowed == (event,)
    assert report([one])["precision"] == share(1, 1)


def test_that_somebody_is_called_what_we_call_them_counts_neither_way():
    named = found("Tom's name is Tom", "name", subject="Tom")
    assert score(scenario(), [named]).allowed == (named,)
    assert score(scenario(), [found("The user's name is Tom", "name")]).extra


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ([found("in Lyon", fate="superseded")], "as expected"),
        ([found("in Lyon", fate="corrected")], "another fate"),
        ([found("in Lyon")], "still active"),
        ([found("in Lyon", fate="superseded"), found("near Lyon")], "still active"),
        ([], "never held"),
    ],
)
def test_what_should_be_retired_is_looked_up(facts, outcome):
    one = score(scenario(PORTO, retired=[LYON]), [found("in Porto"), *facts])
    assert one.retired == ((LYON, outcome),)
    assert bool(one.still_active) is (outcome == "still active")
    assert report([one])["retired_how"] == {outcome: 1}


def test_dates_are_as_precise_as_what_is_said():
    may = Expected(("User",), ("lives_in",), ("Porto",), valid_from="2024-05", valid_to="2025")
    right = found("in Porto", valid_from=date(2024, 5, 31), valid_to=date(2025, 1, 1))
    wrong = found("in Porto", valid_from=date(2024, 6, 1))
    assert report([score(scenario(may), [right])])["details"]["value"] == 1
    assert report([score(scenario(may), [wrong])])["details"]["value"] == 0
    # Beside one that is right, the other is the one too many.
    assert score(scenario(may), [wrong, right]).extra == (wrong,)


def test_a_date_gives_away_what_should_have_been_retired():
    moved = Expected(("User",), ("plans",), ("wedding",), valid_from="2025-09-06")
    before = Expected(("User",), ("plans",), ("wedding",), ("September",), how=("superseded",))
    old = found("a wedding", "plans", valid_from=date(2025, 6, 14))
    one = score(scenario(moved, retired=[before]), [old])
    assert one.missed == (moved,)
    assert one.still_active == (old,)


def test_an_aspect_is_a_detail():
    generics = Expected(("User",), ("opinion",), aspect=("*generic*",))
    for aspect, value in (("generics", 1), ("", 0)):
        facts = [found("of generics", "opinion", aspect=aspect)]
        assert report([score(scenario(generics), facts)])["details"]["value"] == value


def test_nothing_kept_of_nothing_is_quiet():
    scores = [score(scenario(), []), score(scenario(), [found("in Porto")])]
    assert report(scores)["quiet"] == share(1, 2)
    assert report(scores)["recall"]["value"] is None


def test_reliability_is_the_share_right_by_confidence():
    right, wrong = found("in Porto", confidence=0.85), found("in Rome", confidence=0.8)
    unsure = found("in Bath", confidence=0.6)
    itself = found("Tom's name is Tom", "name", subject="Tom", confidence=0.1)
    scores = [score(scenario(PORTO), [right, wrong, itself]), score(scenario(PORTO), [unsure])]
    assert reliability(scores) == [
        {"from": 0.6, "to": 0.7, "stated": 0.6, "right": share(0, 1)},
        {"from": 0.8, "to": 0.9, "stated": 0.825, "right": share(1, 2)},
    ]
    [sure] = reliability([score(scenario(PORTO), [found("in Porto", confidence=1.0)])])
    assert (sure["from"], sure["to"], sure["right"]) == (0.9, 1.0, share(1, 1))


def test_figures_are_sums_over_scenarios_and_by_tag():
    scores = [
        score(scenario(PORTO, tags=("place", "list")), [found("in Porto"), found("in Rome")]),
        score(scenario(PORTO), []),
    ]
    assert report(scores)["precision"] == share(1, 2)
    assert report(scores)["recall"] == share(1, 2)
    assert by_tag(scores)["list"]["recall"] == share(1, 1)
    assert by_tag(scores)["place"]["scenarios"] == 2


@pytest.mark.parametrize(
    # Worked out by hand: (p + z²/2n ± z·√(p(1-p)/n + z²/4n²)) / (1 + z²/n).
    ("some", "of", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1), (0, 10, 0, 0.2775)],
)
def test_the_interval_is_wilsons(some, of, low, high):
    figure = share(some, of)
    assert figure["value"] == some / of
    assert figure["ci"] == pytest.approx([low, high], abs=0.0001)


# The command


@pytest.fixture
def parts(monkeypatch, tmp_path):
    """Two small parts in place of the real ones."""
    chatter = {**MESSAGE, "text": "Thanks, bye!"}
    lives = {"subject": ["User"], "predicate": ["lives_in"], "words": ["Porto"]}
    rides = {"subject": ["User"], "predicate": ["rides"], "words": ["unicorn"]}
    flies = {**rides, "words": ["dragon"]}
    lines = {
        DEV: [{**LINE, "active": [lives, rides]}, {**LINE, "id": "bye", "messages": [chatter]}],
        SET_ASIDE: [
            {**LINE, "messages": [{**MESSAGE, "text": "I live in Tartu."}], "active": [flies]}
        ],
    }
    for part, each in lines.items():
        path = tmp_path / f"{part}.jsonl"
        path.write_text("\n".join(map(json.dumps, each)))
        monkeypatch.setitem(fact_scenarios.PARTS, part, path)


@pytest.fixture
def bench_facts(transactional_db, parts, capsys):
    def run(**options):
        call_command("bench_facts", **options)
        out, err = capsys.readouterr()
        return json.loads(out.strip().splitlines()[-1]), err

    yield run
    for name in schemas("bench_"):
        drop_schema(name)


@pytest.mark.exhaustive
def test_scenarios_are_filed_and_scored(bench_facts):
    """Making the tables takes a while, so that one run is looked at from all sides."""
    with connection.cursor() as cursor:
        # As if a run had been killed.
        cursor.execute("CREATE SCHEMA bench_facts; COMMENT ON SCHEMA bench_facts IS 'half a run'")
    line, err = bench_facts(part="both", show_misses=True)
    overall = line["parts"][DEV]["overall"]
    assert overall["scenarios"] == 2
    assert overall["recall"]["n"] == 2
    assert overall["quiet"] == share(1, 1)
    assert line["parts"][DEV]["by_tag"]["place"]["scenarios"] == 2
    assert line["parts"][SET_ASIDE]["overall"]["scenarios"] == 1
    assert line["with_model"] is False
    assert "precision" in err
    assert schemas("bench_facts") == []
    # Of what is set aside, only figures are reported.
    assert "| I live in Porto." in err
    assert "unicorn" in err
    assert "dragon" not in err + json.dumps(line)
    assert "Tartu" not in err + json.dumps(line)


@pytest.mark.exhaustive
def test_with_a_model_it_is_the_servers_that_reads_and_judges(bench_facts, model_server, settings):
    settings.LLM_PROVIDER, settings.LLM_MODEL = model_server.base_url, "small-model"
    settings.LLM_API_KEY = "a-key"
    unicorn = {"subject": "User", "predicate": "rides", "object": "unicorn", "quote": "Porto"}
    answer = {"facts": [{**unicorn, "text": "User rides a unicorn"}]}
    model_server.answer(json.dumps(answer))
    line, _ = bench_facts(part=DEV, with_model=True)
    assert line["with_model"] is True
    assert line["parts"][DEV]["overall"]["recall"] == share(1, 2)
    assert len(model_server.requests_to(CHAT)) == 2


def test_a_part_that_cannot_be_read_is_said_so(bench_facts):
    fact_scenarios.PARTS[DEV].write_text("{}")
    with pytest.raises(CommandError, match=r"dev\.jsonl, line 1"):
        bench_facts(part=DEV)
