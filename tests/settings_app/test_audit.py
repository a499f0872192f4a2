"""What programs changed: shown page by page, and let go when it is old."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from config import tasks
from palace.models import IdempotentWrite
from palace.models.operations import WRITES_KEPT_FOR, forget_answered_writes
from settings_app.api_keys import KEPT_FOR, AuditLine, add_audit_line, issue

PAGE = "/settings/keys/"


def test_what_programs_changed_is_listed_page_by_page(alices, alice, bob):
    key, _ = issue(alice, "notes")
    for number in range(26):
        add_audit_line(key, door="rest", action="POST", path=f"/turns/{number}/", status=201)
    add_audit_line(issue(bob, "his")[0], door="mcp", action="call", path="/his/", status=200)
    first, second = alices.get(PAGE).text, alices.get(f"{PAGE}?page=2").text
    assert "/turns/25/" in first
    assert "/turns/0/" not in first
    assert "/turns/0/" in second
    assert "/his/" not in first + second


@pytest.mark.django_db(transaction=True)
def test_a_write_of_an_account_that_is_gone_meanwhile_is_not_noted(alice):
    key, _ = issue(alice, "notes")
    alice.delete()
    add_audit_line(key, door="rest", action="POST", path="/turns", status=410)
    assert not AuditLine.objects.exists()


def test_old_audit_lines_go(alice):
    key, _ = issue(alice, "notes")
    for path in ("/old/", "/new/"):
        add_audit_line(key, door="rest", action="POST", path=path, status=201)
    AuditLine.objects.filter(path="/old/").update(at=timezone.now() - KEPT_FOR)
    tasks.forget_old_audit_lines()
    assert [line.path for line in AuditLine.objects.all()] == ["/new/"]


def test_old_answers_go(alice):
    now = timezone.now()
    for key, claimed_at in (
        ("old", now - WRITES_KEPT_FOR),
        ("new", now - WRITES_KEPT_FOR + timedelta(hours=1)),
    ):
        IdempotentWrite.objects.create(owner=alice, key=key, claimed_at=claimed_at)
    forget_answered_writes()
    assert [write.key for write in IdempotentWrite.objects.all()] == ["new"]


def test_both_go_each_day(settings):
    daily = {each["task"]: each["schedule"] for each in settings.CELERY_BEAT_SCHEDULE.values()}
    for task in (tasks.forget_old_audit_lines, forget_answered_writes):
        assert daily[task.name] == 24 * 3600
