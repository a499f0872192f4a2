"""A home is a place, a spouse a person: what is no such thing is not held, and retires nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from palace.knowledge.facts.judgement import Judgement, Verdict
from palace.knowledge.facts.judging.kinds import checked, doubt_of
from palace.knowledge.facts.remember import remember
from palace.models import Entity, Fact
from tests.knowledge.facts.conftest import facts_answer, judgements_answer, statement
from tests.model_server import CHAT

TRUE_HOMES = """
    Berlin|Óbidos|Little Haywood|Phoenix|Java|McAllen|LaGrange|O'Fallon|St. Louis|Swift Current
    NYC|D.C.|Llanfairpwll|small village near Lyon|flat in Leeds|the countryside|Ho Chi Minh City
    Redmond|Mountain View|Xi'an
"""
FALSE_HOMES = """
    Kubernetes|Postgres|Linear|Rust|vim|Slack|Jira|Excel|TypeScript|AWS|Notion|Discord|GraphQL
    the terminal|their inbox|microservice architecture|Node.js|C++|VS Code|k8s|Google Docs
"""
TRUE_SPOUSES = """
    Anna|Julia|Ruby|Jasper|Björn|Oyelaran|Claude|Ada|Mary Ann|doctor|nurse from Leeds
    Maarten de Vries|Xiulan|their best friend|Siobhán|Sunny
"""
FALSE_SPOUSES = """
    Rust|Python|Kubernetes|their job|the game|the sea|TypeScript|Emacs|Docker|Postgres|their career
    the code|Vim|Linux|the road|Terraform
"""
TRUE_EMPLOYERS = """
    Google|google|GitHub|Slack|Notion|a bank|small law firm|the hospital|Thornbury Mill|HSBC
    Anglia Ruskin University|NHS|startup in Leeds|Docker|Stripe|McKinsey|Deutsche Bahn|bakery
"""
FALSE_EMPLOYERS = """
    scale|money|fun|Kubernetes|Rust|TypeScript|night times|speed|intersection of ML and biology
    capacity|weekends|Postgres|Vim|PyTorch|length|the edge of cryptography
"""


def cases(listed):
    return [name.strip() for line in listed.strip().splitlines() for name in line.split("|")]


def doubted(predicate, name, known=(), tools=()):
    said = statement(f"User {predicate} {name}", predicate, name)
    return bool(doubt_of(said, known, lambda one: one in tools))


@pytest.mark.parametrize(
    ("predicate", "listed"),
    [("lives_in", TRUE_HOMES), ("married_to", TRUE_SPOUSES), ("works_at", TRUE_EMPLOYERS)],
)
def test_what_may_be_of_the_kind_is_accepted_though_no_list_has_it(predicate, listed):
    names = cases(listed)
    assert len(names) >= 15
    assert [name for name in names if doubted(predicate, name)] == []


@pytest.mark.parametrize(
    ("predicate", "listed"),
    [("lives_in", FALSE_HOMES), ("married_to", FALSE_SPOUSES), ("works_at", FALSE_EMPLOYERS)],
)
def test_what_is_known_as_something_else_is_doubted(predicate, listed):
    names = cases(listed)
    assert len(names) >= 15
    assert [name for name in names if not doubted(predicate, name)] == []


@pytest.mark.parametrize(
    ("predicate", "right", "wrong"),
    [
        ("name", "Ruby", "Kubernetes"),
        ("name", "Nguyễn Văn An", "123"),
        ("age", "34", "tired"),
        ("salary", "60k", "enough"),
        ("birthday", "3 May", "great"),
    ],
)
def test_names_and_figures_too(predicate, right, wrong):
    assert not doubted(predicate, right)
    assert doubted(predicate, wrong)


def test_what_the_palace_knows_as_a_tool_is_no_home():
    assert not doubted("lives_in", "Marmot")
    assert doubted("lives_in", "Marmot", tools=["Marmot"])


def test_a_denial_is_not_checked():
    said = statement("User does not live in Slack", object="Slack", negated=True)
    judgement = Judgement(Verdict.ADD, said)
    assert checked(judgement, [], lambda _: True) is judgement


def held(palace):
    return sorted(Fact.objects.within(palace).active().values_list("text", flat=True))


@pytest.mark.parametrize(
    ("true", "tools", "kept"),
    [
        ("I live in Berlin.", "We moved to Kubernetes last month.", "User lives in Berlin"),
        ("I work at Siemens.", "I work at scale.", "User works at Siemens"),
        ("I am married to Anna.", "I am married to Rust.", "User is married to Anna"),
        ("I live in Berlin.", "We moved to Linear.", "User lives in Berlin"),
    ],
)
def test_talk_of_tools_retires_nothing(palace, true, tools, kept):
    now = timezone.now()
    remember(palace, true, now=now - timedelta(days=90))
    assert remember(palace, tools, now=now) == []
    assert held(palace) == [kept]


def test_what_one_uses_is_no_home_though_an_island_is_called_so(palace):
    remember(palace, "I live in Leeds.", now=timezone.now() - timedelta(days=90))
    remember(palace, "I use Java every day.")
    remember(palace, "We moved to Java last month.")
    assert "User lives in Leeds" in held(palace)


def test_what_was_mined_as_a_thing_is_no_home(palace):
    Entity.objects.create(palace=palace, kind="item", slug="marmot", name="Marmot")
    remember(palace, "I live in Leeds.", now=timezone.now() - timedelta(days=90))
    remember(palace, "We moved to Marmot last month.")
    assert held(palace) == ["User lives in Leeds"]


def test_true_moves_still_happen(palace):
    now = timezone.now()
    for days, text in ((9, "I live in Berlin."), (5, "I moved to Óbidos."), (1, "I live in Rye.")):
        remember(palace, text, now=now - timedelta(days=days))
    assert held(palace) == ["User lives in Rye"]


HOME = {"turn": 0, "subject": "User", "predicate": "lives_in", "object": "Berlin"}
HOME |= {"text": "User lives in Berlin"}


@pytest.mark.parametrize("predicate", ["lives_in", "uses"])
def test_a_model_cannot_retire_a_home_by_a_tool_either(palace, model, predicate):
    text = f"User {predicate} Kubernetes"
    tool = HOME | {"predicate": predicate, "object": "Kubernetes", "text": text}
    shift = judgements_answer({"new": 0, "verdict": "UPDATE", "fact": 0, "change": "shift"})
    model.script([facts_answer(HOME), facts_answer(tool), shift])
    remember(palace, "I live in Berlin.")
    remember(palace, "We moved to Kubernetes last month.")
    assert len(model.requests_to(CHAT)) == 3
    kept = ["User lives in Berlin"]
    assert held(palace) == (kept if predicate == "lives_in" else [*kept, text])
