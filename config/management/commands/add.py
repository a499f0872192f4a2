"""`manage.py add "a sentence"`: keep it word for word, and learn what it says."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from io import StringIO
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError

from config.management.base import LociCommand, add_user_argument, user_of
from language.english.grammatical_person import to_second_person
from language.errors import PalaceError
from palace.sdk import AddResults, Memory
from palace.sdk.process import bring_tables_up_to_date

_EVENTS = {"ADD": "Learnt", "UPDATE": "Updated", "DELETE": "No longer so", "NONE": "Known already"}


class Command(LociCommand):
    help = "Remember a text: store it word for word and learn the facts in it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "text", nargs="?", default="-", metavar="TEXT", help="Standard input without it, or -."
        )
        add_user_argument(parser)
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *, text: str, user: str, subject: str, **options: Any) -> None:
        said = sys.stdin.read() if text == "-" else text
        if not said.strip():
            raise CommandError("There is nothing to remember: the text is empty.")
        if settings.USES_EMBEDDED_SERVICES:
            bring_tables_up_to_date()
        if user:  # The SDK would make an account of a name that is misspelt.
            user_of(user)
        try:
            results = Memory(user or None, subject=subject).add(said)
        except PalaceError as error:
            raise CommandError(str(error)) from error
        # Now, not by the worker: the next command finds it, also where Loci is not running.
        call_command("mine", user=user, subject=subject, stdout=StringIO())
        if options["json"]:
            self.stdout.write(json.dumps(results, ensure_ascii=False))
        else:
            self._show(results)

    def _show(self, results: AddResults) -> None:
        self.stdout.write("Stored word for word.")
        for event in results["results"]:
            statement = event["new_memory"] or event["old_memory"] or ""
            self.stdout.write(f"{_EVENTS[event['event']]}: {to_second_person(statement)}")
        for note in results.get("notes", []):
            self.stdout.write(note)
