"""A home is a place, a spouse a person: an object of another kind is doubted."""

from __future__ import annotations

import pytest

from language.english.judging.object_kinds import checked, doubt_of
from language.facts import Candidate, Judgement, Thing, Verdict, Words

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


def said(predicate, name, *, negated=False):
    text = f"User {predicate} {name}"
    subject = Thing("User", "person")
    return Candidate("fact", subject, predicate, name, text, (Words(0, 0, 5),), negated=negated)


def doubted(predicate, name, known=(), tools=()):
    return bool(doubt_of(said(predicate, name), known, lambda one: one in tools))


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
    judgement = Judgement(Verdict.ADD, said("lives_in", "Slack", negated=True))
    assert checked(judgement, [], lambda _: True) is judgement
