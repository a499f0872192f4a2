"""Palaces dream by themselves at their owner's night, where there is anything new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from palace.knowledge.dreaming.dream_run import (
    dream_at_night,
    dream_of,
    dream_where_it_is_night,
    is_due,
    palaces_due,
)
from palace.models import Activity, DreamMark, Palace
from settings_app.models import MemorySettings
from tests.knowledge.facts.conftest import said

NIGHT = datetime(2026, 3, 4, 3, 30, tzinfo=UTC)
DAY = datetime(2026, 3, 4, 14, 0, tzinfo=UTC)


@pytest.fixture
def dreamt(palace, hold):
    """A palace with a fact, that last dreamt so many hours before a moment."""

    def dreamt(now, hours, *, news=True):
        at = now - timedelta(hours=hours)
        Palace.objects.filter(pk=palace.pk).update(created_at=at - timedelta(days=9))
        DreamMark.objects.update_or_create(palace=palace, defaults={"dreamt_at": at})
        hold("User likes figs", "likes", at=at + timedelta(minutes=1 if news else -1))
        palace.refresh_from_db()
        return palace

    return dreamt


@pytest.mark.parametrize(
    ("now", "hours", "is_it"),
    [(NIGHT, 24, True), (NIGHT, 10, False), (DAY, 24, False), (DAY, 40, True)],
)
def test_once_a_night_or_by_day_after_a_night_without(dreamt, now, hours, is_it):
    palace = dreamt(now, hours)
    assert [night.palace for night in palaces_due(now)] == ([palace] if is_it else [])


def test_the_night_is_the_owners(dreamt, palace):
    MemorySettings.objects.create(owner=palace.owner, time_zone="Asia/Tokyo")
    dreamt(NIGHT, 24)
    assert is_due(palace, NIGHT) is None
    assert is_due(palace, NIGHT + timedelta(hours=14)) is not None


def test_without_news_nobody_dreams(dreamt, palace):
    dreamt(NIGHT, 24, news=False)
    assert is_due(palace, NIGHT) is None
    said(palace, "Keep it short!")
    assert is_due(palace, NIGHT) is None
    MemorySettings.objects.create(owner=palace.owner, dreams="model")
    assert is_due(palace, NIGHT).with_model


def test_by_default_no_model_is_asked(dreamt, palace):
    dreamt(NIGHT, 24)
    assert is_due(palace, NIGHT).with_model is False


def test_it_can_be_turned_off(dreamt, palace):
    MemorySettings.objects.create(owner=palace.owner, dreams="off")
    dreamt(NIGHT, 24)
    assert is_due(palace, NIGHT) is None


def test_a_palace_that_holds_nothing_does_not_dream(palace):
    Palace.objects.update(created_at=NIGHT - timedelta(days=30))
    assert list(palaces_due(NIGHT)) == []


def test_the_tasks_dream_once(palace, hold, queued):
    hold("User likes figs", "likes")
    Palace.objects.update(created_at=timezone.now() - timedelta(days=3))
    dream_where_it_is_night()
    assert queued() == ["dream_at_night"]
    for _ in range(2):
        dream_at_night(palace.pk)
    assert Activity.objects.filter(kind="dreamt").count() == 1
    dream_of(palace.pk)
    assert Activity.objects.filter(kind="dreamt").count() == 2
    dream_of(0)
    dream_at_night(0)
