"""`manage.py api_key`: for those who start with a terminal."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from settings_app.api_keys import ApiKey, issue, key_of


def run(*arguments):
    """What it printed as its answer, and what beside it."""
    out, beside = StringIO(), StringIO()
    call_command("api_key", *arguments, stdout=out, stderr=beside)
    return out.getvalue(), beside.getvalue()


def test_without_arguments_it_prints_a_key_of_the_owner_that_may_do_all(alice):
    text, said = run()
    assert text.count("\n") == 1
    key = key_of(text.strip())
    assert key.owner == alice
    assert key.scopes == ApiKey.Scope.values
    assert (key.subject, key.expires_at, key.trusts_open_webui) == (None, None, False)
    assert text.strip() not in said


def test_what_is_asked_for_is_what_the_key_may(alice, bob):
    asked = ["--owner", "bob", "--name", "CI", "--scope", "read", "--scope", "write"]
    asked += ["--subject", "anna", "--expires", "7", "--trust-open-webui"]
    text, said = run(*asked)
    key = key_of(text.strip())
    assert (key.owner, key.name, key.subject) == (bob, "CI", "anna")
    assert key.scopes == ["read", "write"]
    assert key.trusts_open_webui
    assert timedelta(days=6) < key.expires_at - timezone.now() < timedelta(days=8)
    assert "the palace of anna (read, write)" in said


def test_keys_are_listed_and_revoked_by_how_they_begin(alice, bob):
    key, text = issue(alice, "lost laptop")
    _, others = issue(bob, "his")
    listed, _ = run("--owner", "alice", "--list")
    assert listed.split("\t")[:3] == [key.start, "active", "read,write"]
    assert text not in listed
    with pytest.raises(CommandError, match="No key begins so"):
        run("--owner", "alice", "--revoke", others[:11])
    run("--owner", "alice", "--revoke", key.start)
    assert key_of(text) is None
    assert key_of(others) is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--owner", "nobody"], "No active user is called 'nobody'"),
        (["--expires", "0"], "--expires is a number of days"),
        (["--subject", "  "], "--subject is blank"),
        (["--name", "x" * 101], "--name has 1 to 100"),
    ],
)
def test_what_is_wrong_gets_a_message(alice, arguments, said):
    with pytest.raises(CommandError, match=said):
        run(*arguments)
    assert not ApiKey.objects.exists()
