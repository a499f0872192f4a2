"""`manage.py audit`: check that palaces are consistent."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from config.audit import Audited, audit
from config.management.base import LociCommand, add_user_argument, user_of
from palace.models import Palace


class Command(LociCommand):
    help = (
        "Check that nothing is lost, doubled or at odds in palaces, as "
        f"{settings.DOCS_PAGE.format('backup')} lists it. Nothing is written. "
        "The exit code is 1 if anything is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)
        parser.add_argument("--all", action="store_true", help="Everybody's palaces.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *, user: str, subject: str, **options: Any) -> None:
        if options["all"] and (user or subject):
            raise CommandError("--all is everybody's palaces; leave out --user and --subject.")
        palaces = Palace.objects.order_by("pk").select_related("owner")
        if not options["all"]:
            palaces = palaces.filter(owner=user_of(user))
        if subject:
            palaces = palaces.filter(subject=subject)
        audited = audit(palaces, everything=options["all"])
        lines = [json.dumps(audited.as_json())] if options["json"] else in_words(audited)
        for line in lines:
            self.stdout.write(line)
        if audited.wrong:
            raise SystemExit(1)


def in_words(audited: Audited) -> Iterator[str]:
    for audit_of in audited.palaces:
        counts = ", ".join(f"{count:,} {what}" for what, count in audit_of.counts.items())
        broken = [each for each in audit_of.findings if each.wrong]
        verdict = f"{len(broken)} of {len(audit_of.findings)} checks failed" if broken else "whole"
        yield f"{audit_of.name} ({audit_of.palace}): {verdict}; {counts}."
        for each in broken:
            yield f"  {each.check}: {each.wrong:,} wrong. {each.rule} First: "
            yield f"    {', '.join(each.examples)}"
    for each in audited.installation:
        if each.wrong:
            yield f"{each.check}: {each.wrong:,} wrong. {each.rule}"
            yield f"    {', '.join(each.examples)}"
    yield from audited.notes
    checks = "no checks" if not audited.checks else f"{audited.checks:,} checks"
    count = len(audited.palaces)
    yield f"{count:,} {'palace' if count == 1 else 'palaces'}, {checks}: {audited.wrong:,} failed."
