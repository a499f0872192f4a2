"""Filters: every operator on every kind of field, and a sentence for what makes no sense."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime
from itertools import product

import pytest

from language.errors import BadFilter
from palace.knowledge.facts.filters import (
    FIELDS,
    MOST_CONDITIONS,
    MOST_DEPTH,
    OPERATORS,
    condition_of,
)
from palace.models import Fact
from tests.factories import EntityFactory, FactFactory

JANUARY, JUNE = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)


def where(field, operator, value):
    return {"field": field, "operator": operator, "value": value}


@pytest.fixture
def python(palace):
    return FactFactory(
        subject=EntityFactory(palace=palace, name="User"),
        type="preference",
        predicate="likes",
        object="Python",
        text="User likes Python for ML",
        category="skills/languages",
        tags=["Work", "code"],
        confidence=0.9,
        agent="helper",
        recorded_at=JANUARY,
        valid_from=JANUARY,
        metadata={
            "tag": "work",
            "priority": 5,
            "done": True,
            "due": "2025-03-01T12:00:00+02:00",
            "labels": ["Red", "blue", 7],
            "nothing": None,
            "0": "zero",
            "subject": "a key like a field",
        },
    )


@pytest.fixture
def cat(palace, python):
    return FactFactory(
        subject=EntityFactory(palace=palace, name="Nina"),
        predicate="has_pet",
        object="Miso",
        text="Nina has a cat, 100% grey",
        category="home/pets",
        tags=["home"],
        confidence=0.5,
        run="r1",
        recorded_at=JUNE,
        valid_from=JUNE,
        valid_to=datetime(2026, 1, 1, tzinfo=UTC),
        metadata={"tag": "home", "priority": "9", "due": "soon", "labels": "Red"},
    )


@pytest.fixture
def found(palace, python, cat):
    """The names, `python` and `cat`, of the facts that meet a filter."""
    names = {python.pk: "python", cat.pk: "cat"}

    def found(filters):
        facts = Fact.objects.within(palace).filter(condition_of(filters))
        return sorted(names[key] for key in facts.values_list("pk", flat=True))

    return found


PYTHON, CAT, BOTH, NEITHER = ["python"], ["cat"], ["cat", "python"], []


@pytest.mark.parametrize(
    ("field", "operator", "value", "expected"),
    [
        ("memory", "contains", "Python", PYTHON),
        ("memory", "contains", "python", NEITHER),
        ("text", "icontains", "PYTHON", PYTHON),
        ("text", "contains", "%", CAT),
        ("text", "contains", "_", NEITHER),
        ("text", "eq", "User likes Python for ML", PYTHON),
        ("type", "eq", "preference", PYTHON),
        ("type", "in", ["fact", "event"], CAT),
        ("subject", "eq", "Nina", CAT),
        ("subject", "ne", "Nina", PYTHON),
        ("predicate", "in", ["likes", "has_pet"], BOTH),
        ("object", "nin", ["Python"], CAT),
        ("category", "eq", "home", NEITHER),
        ("category", "eq", "home/pets", CAT),
        ("category", "contains", "home/", CAT),
        ("agent_id", "eq", "helper", PYTHON),
        ("agent_id", "eq", None, CAT),
        ("run_id", "ne", None, CAT),
        ("user_id", "eq", None, BOTH),
        ("user_id", "eq", "somebody", NEITHER),
        ("tags", "contains", "code", PYTHON),
        ("tags", "contains", "cod", NEITHER),
        ("tags", "eq", "home", CAT),
        ("tags", "icontains", "wORK", PYTHON),
        ("tags", "in", ["home", "code"], BOTH),
        ("tags", "nin", ["home"], PYTHON),
        ("confidence", "gt", 0.5, PYTHON),
        ("confidence", "gte", 0.5, BOTH),
        ("confidence", "lt", 1, BOTH),
        ("confidence", "in", [0.5], CAT),
        ("created_at", "gte", "2025-02-01", CAT),
        ("updated_at", "lt", date(2025, 2, 1), PYTHON),
        ("valid_from", "eq", "2025-01-01T01:00:00+01:00", PYTHON),
        ("valid_to", "eq", None, PYTHON),
        ("valid_to", "gt", JUNE, CAT),
        ("valid_to", "ne", "2026-01-01", PYTHON),
        ("created_at", "in", ["2025-06-01"], CAT),
        ("tag", "eq", "work", PYTHON),
        ("tag", "in", ["home", "work"], BOTH),
        ("tag", "contains", "or", PYTHON),
        ("tag", "icontains", "HOME", CAT),
        ("absent", "eq", "x", NEITHER),
        ("absent", "ne", "x", BOTH),
        ("absent", "eq", None, BOTH),
        ("nothing", "eq", None, BOTH),
        ("tag", "eq", None, NEITHER),
        ("priority", "eq", 5.0, PYTHON),
        ("priority", "eq", "9", CAT),
        ("priority", "eq", 9, NEITHER),
        ("priority", "gt", 4, PYTHON),
        ("priority", "lte", 100, PYTHON),
        ("done", "eq", True, PYTHON),
        ("done", "eq", 1, NEITHER),
        ("due", "gte", "2025-03-01T10:00:00Z", PYTHON),
        ("due", "gt", "2025-03-01T10:00:00Z", NEITHER),
        ("due", "lt", "2026-01-01", PYTHON),
        ("labels", "contains", "Red", BOTH),
        ("labels", "contains", "Re", CAT),
        ("labels", "contains", 7, PYTHON),
        ("labels", "icontains", "RED", BOTH),
        ("0", "eq", "zero", PYTHON),
        ("subject", "contains", "key", NEITHER),
        ("metadata.subject", "contains", "key", PYTHON),
        ("tag", "in", [], NEITHER),
        ("tag", "nin", [], BOTH),
    ],
)
def test_a_condition_finds_what_meets_it(found, field, operator, value, expected):
    assert found(where(field, operator, value)) == expected


WORK, HOME, SURE = (
    where("tag", "eq", "work"),
    where("tag", "eq", "home"),
    where("confidence", "gt", 0.8),
)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"AND": [WORK, SURE]}, PYTHON),
        ({"AND": [HOME, SURE]}, NEITHER),
        ({"OR": [WORK, HOME]}, BOTH),
        ({"NOT": WORK}, CAT),
        ({"NOT": {"NOT": WORK}}, PYTHON),
        ({"NOT": {"OR": [WORK, HOME]}}, NEITHER),
        ({"AND": [{"NOT": HOME}, {"OR": [SURE, HOME]}]}, PYTHON),
        ({"NOT": where("priority", "gt", 1)}, CAT),
        ({"NOT": where("absent", "gt", 1)}, BOTH),
        ({"NOT": {"AND": [where("valid_to", "gt", "2020-01-01"), HOME]}}, PYTHON),
        ({"AND": [WORK]}, PYTHON),
    ],
)
def test_conditions_are_joined(found, filters, expected):
    assert found(filters) == expected


def test_the_callers_own_category_counts(found, cat):
    cat.metadata = {"category": "animals"}
    cat.save()
    assert found(where("category", "eq", "animals")) == CAT
    assert found(where("category", "eq", "home/pets")) == NEITHER
    assert found(where("category", "ne", "animals")) == PYTHON
    assert found(where("category", "contains", "skills")) == PYTHON


def test_a_memory_is_found_by_its_id_and_by_its_hash(found, cat, python):
    assert found(where("id", "eq", str(cat.memory))) == CAT
    assert found(where("id", "in", [str(cat.memory), str(python.memory)])) == BOTH
    assert found(where("id", "ne", str(cat.memory))) == PYTHON
    assert found(where("hash", "eq", python.hash.upper())) == PYTHON


def test_a_memory_was_created_with_its_first_version(palace, found, cat):
    FactFactory(
        subject=cat.subject,
        memory=cat.memory,
        text="before",
        recorded_at=JANUARY,
        retired_at=JUNE,
        fate="corrected",
    )
    facts = Fact.objects.within(palace).active()
    assert not facts.filter(condition_of(where("created_at", "gte", "2025-02-01"))).exists()
    updated = condition_of(where("updated_at", "gte", "2025-02-01"))
    assert facts.get(updated) == cat


DEEP = WORK
for _ in range(MOST_DEPTH):
    DEEP = {"NOT": DEEP}


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ("tag=work", "“tag=work” is no filter. Write an object with field"),
        ({}, "{} is no filter."),
        ([WORK], "is no filter"),
        ({"field": "tag", "operator": "eq"}, "is no filter"),
        ({"XOR": [WORK]}, "is no filter"),
        ({"AND": [WORK], "OR": [HOME]}, "is no filter"),
        ({"AND": []}, "AND takes a list of at least one filter, not []."),
        ({"OR": "tag"}, "OR takes a list"),
        ({"NOT": [WORK]}, "is no filter"),
        ({"AND": [{"OR": [3]}]}, "3 is no filter"),
        (where("tag", "like", "x"), "“like” is no operator of filters; use one of eq, ne, gt"),
        (where("tag", ["eq"], "x"), "is no operator"),
        (where("", "eq", "x"), "is no field"),
        (where(7, "eq", "x"), "7 is no field"),
        (where("a\0b", "eq", "x"), "is no field"),
        (where("x" * 201, "eq", "x"), "is no field"),
        (where("memory", "gt", "x"), "gt cannot be asked of “memory”, which is text; use eq or"),
        (where("memory", "eq", 7), "“memory” is compared with text, not with 7."),
        (where("memory", "contains", None), "“memory” is compared with text, not with None."),
        (where("memory", "eq", "x" * 1001), "up to 1000 characters"),
        (where("memory", "eq", "a\0"), "cannot be stored"),
        (where("type", "eq", "guess"), "there are fact, preference, opinion, event."),
        (where("confidence", "eq", "high"), "“confidence” is compared with a number"),
        (where("confidence", "gt", value=True), "compared with a number, not with True"),
        (where("confidence", "gt", float("nan")), "compared with a number, not with nan"),
        (where("confidence", "gt", 10**400), "compared with a number"),
        (where("confidence", "contains", 1), "contains cannot be asked of “confidence”"),
        (where("created_at", "gt", "yesterday"), "compared with a time such as 2024-01-31"),
        (where("created_at", "contains", "2024"), "cannot be asked of “created_at”"),
        (where("valid_to", "gt", None), "compared with a time"),
        (where("tags", "gt", "x"), "which is a list of words"),
        (where("tags", "contains", ["x"]), "“tags” is compared with text"),
        (where("priority", "gt", "much"), "compared with a time"),
        (where("priority", "eq", [1]), "compared with text, a number, true, false or null"),
        (where("priority", "contains", {}), "compared with text, a number"),
        (where("priority", "eq", float("inf")), "compared with text, a number"),
        (where("tag", "in", "work"), "in and nin take a list of values for “tag”, not “work”."),
        (where("tag", "in", ["x"] * 201), "201 values for “tag” are too many; 200 fit."),
        (DEEP, f"The filter is more than {MOST_DEPTH} levels deep; make it flatter."),
        ({"OR": [WORK] * (MOST_CONDITIONS + 1)}, f"more than {MOST_CONDITIONS} conditions"),
    ],
)
def test_a_filter_that_makes_no_sense_gets_a_sentence(filters, sentence):
    with pytest.raises(BadFilter) as caught:
        condition_of(filters)
    assert sentence in str(caught.value)


ANYTHING = ["fact", 7, 0.5, "2024-01-31", ["fact"], ["2024-01-31"], None]


@pytest.mark.some(8)
@pytest.mark.parametrize("field", [*FIELDS, "a key", "x' OR 1=1 --", "%s", "a__b", "é", '"'])
def test_whatever_is_asked_the_database_answers_or_the_filter_is_refused(found, field):
    for operator, value in product(OPERATORS, ANYTHING):
        with contextlib.suppress(BadFilter):
            condition = where(field, operator, value)
            assert sorted(found(condition) + found({"NOT": condition})) == BOTH
