"""Make, list and revoke keys of programs in a terminal."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from config import environment
from config.management.base import LociCommand
from isolation import row_access
from settings_app.accounts import person_or_owner
from settings_app.api_keys import SHOWN_CHARS, ApiKey, issue

MOST_CHARS, MOST_SUBJECT_CHARS, MOST_DAYS = 100, 200, 3650


class Command(LociCommand):
    help = "Print a new key for a program, once. Or list what keys there are, or revoke one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--owner", metavar="NAME", help="Whose key (the owner of this Loci).")
        parser.add_argument("--name", default="made in a terminal", help="What it is for.")
        parser.add_argument(
            "--scope",
            action="append",
            choices=ApiKey.Scope.values,
            help="What it may do; again for another (all).",
        )
        parser.add_argument(
            "--subject",
            metavar="PERSON",
            help='The one palace it opens: a user_id, or "" for the owner\'s own (all of them).',
        )
        parser.add_argument(
            "--trust-open-webui",
            action="store_true",
            help="Open WebUI's headers say who is talking, and in which chat.",
        )
        parser.add_argument("--expires", metavar="DAYS", type=int, help="It ends by itself then.")
        parser.add_argument("--json", action="store_true", help="Print JSON.")
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument("--list", action="store_true", help="Print what keys there are.")
        instead.add_argument("--revoke", metavar="START", help=f"Its first {SHOWN_CHARS} letters.")

    def handle(self, *, owner: str | None, **options: Any) -> None:
        person = person_or_owner(owner)
        with row_access.open_account(person.pk):
            if options["list"]:
                self._list(person, as_json=options["json"])
            elif options["revoke"] is not None:
                self._revoke(person, options["revoke"], as_json=options["json"])
            else:
                self._make(person, **options)

    def _make(
        self,
        person: User,
        *,
        name: str,
        scope: list[str] | None,
        subject: str | None,
        trust_open_webui: bool,
        expires: int | None,
        **options: Any,
    ) -> None:
        _check(name, subject, expires)
        key, text = issue(
            person,
            name.strip(),
            scopes=scope or ApiKey.Scope.values,
            subject=subject,
            trusts_open_webui=trust_open_webui,
            expires_at=None if expires is None else timezone.now() + timedelta(days=expires),
        )
        if options["json"]:
            self.stdout.write(json.dumps({"key": text, **_as_json(key)}))
            return
        may = ", ".join(key.scopes)
        self.stderr.write(
            f"A key of {person.get_username()}'s for {_palaces(key)} ({may}). It is not shown "
            "again:"
        )
        self.stdout.write(text)

    def _list(self, person: User, *, as_json: bool) -> None:
        keys = list(ApiKey.objects.filter(owner=person).order_by("pk"))
        if as_json:
            self.stdout.write(json.dumps([_as_json(key) for key in keys]))
            return
        if not keys:
            self.stderr.write(f"{person.get_username()} has no keys.")
        for key in keys:
            used = f"used {key.last_used_at:%Y-%m-%d}" if key.last_used_at else "never used"
            columns = (key.start, key.state, ",".join(key.scopes), _palaces(key), used, key.name)
            self.stdout.write("\t".join(columns))

    def _revoke(self, person: User, start: str, *, as_json: bool) -> None:
        # Who has the whole key may give that: its beginning counts.
        keys = ApiKey.objects.filter(owner=person, start=start[:SHOWN_CHARS], revoked_at=None)
        found = list(keys[:2])
        if len(found) != 1:
            raise CommandError(
                f"{'Several keys begin' if found else 'No key begins'} so. "
                f"`{environment.KEY} --list` prints how they begin."
            )
        [key] = found
        key.revoke()
        self.stderr.write(f"Revoked: {key}")
        if as_json:
            key.refresh_from_db()
            self.stdout.write(json.dumps(_as_json(key)))


def _check(name: str, subject: str | None, expires: int | None) -> None:
    if not 1 <= len(name.strip()) <= MOST_CHARS:
        raise CommandError(f"--name has 1 to {MOST_CHARS} characters.")
    if subject is not None and len(subject) > MOST_SUBJECT_CHARS:
        raise CommandError(f"--subject has up to {MOST_SUBJECT_CHARS} characters.")
    if subject and not subject.strip():
        raise CommandError('--subject is blank. Give a user_id, or "" for the owner\'s own palace.')
    if expires is not None and not 1 <= expires <= MOST_DAYS:
        raise CommandError(f"--expires is a number of days, 1 to {MOST_DAYS}.")


def _as_json(key: ApiKey) -> dict[str, object]:
    return {
        "start": key.start,
        "name": key.name,
        "state": str(key.state),
        "scopes": list(key.scopes),
        "subject": key.subject,
        "trusts_open_webui": key.trusts_open_webui,
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
    }


def _palaces(key: ApiKey) -> str:
    if key.subject is None:
        return "all palaces"
    return f"the palace of {key.subject}" if key.subject else "their own palace"
