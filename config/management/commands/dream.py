"""`manage.py dream`: tidy up a palace's facts now; proposals wait in the inbox."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from django.core.management.base import CommandError

from config.management.base import PalaceCommand, add_user_argument, palace_of
from language.errors import PalaceError
from palace.knowledge.dreaming import Dreamt, Estimate, dream, estimate
from palace.models import Proposal

WITHOUT = "There is no model: the local rules look for what says the same, and what is at odds."


class Command(PalaceCommand):
    help = (
        "Dream over a palace now: look for what says the same, what is at odds or out of date, and"
        " for preferences. It says what it may cost before, and proposes; nothing is changed but by"
        " kinds of proposals that the owner trusts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_user_argument(parser)
        parser.add_argument("--local", action="store_true", help="By local rules alone.")
        parser.add_argument(
            "--estimate", action="store_true", help="Only say what it would look at and cost."
        )
        parser.add_argument("--json", action="store_true", help="One line, for programs.")

    def handle(self, *, user: str, subject: str, local: bool, **options: Any) -> None:
        palace = palace_of(user, subject)
        try:
            before = estimate(palace)
            if not local or options["estimate"]:
                self._say(before, as_json=options["json"] and options["estimate"])
            if options["estimate"]:
                return
            dreamt = dream(palace, with_model=not local)
        except PalaceError as error:
            raise CommandError(str(error)) from error
        if dreamt.already:
            raise CommandError("This palace is dreaming already; try again when that is over.")
        waiting = Proposal.objects.within(palace).waiting().count()
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(dreamt, waiting)))
        else:
            self._show(dreamt, waiting)

    def _say(self, before: Estimate, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(_estimate_as_json(before)))
            return
        for note in before.notes:
            self.stderr.write(note)
        if not before.model:
            self.stderr.write(WITHOUT)
            return
        self.stderr.write(
            f"{before.model} is asked about {before.facts:,} facts, {before.feedback:,} pieces of"
            f" feedback and {before.messages:,} messages: about {_usd(before.likely.usd)},"
            f" {before.likely.tokens:,} tokens; at most {_usd(before.most.usd)},"
            f" {before.most.tokens:,} tokens."
        )
        if not before.fits:
            self.stderr.write(
                f"The limit is {_usd(before.limits.usd)} and {before.limits.tokens:,} tokens:"
                " less is looked at."
            )

    def _show(self, dreamt: Dreamt, waiting: int) -> None:
        if dreamt.activity is not None:
            detail = dreamt.activity.detail
            self.stdout.write(dreamt.activity.summary)
            if detail["calls"]:
                cost = _usd(Decimal(detail["cost_usd"]) if detail["cost_usd"] else None)
                tokens = detail["tokens_in"] + detail["tokens_out"]
                self.stdout.write(f"It cost {cost}, {tokens:,} tokens.")
        for note in dreamt.notes:
            self.stdout.write(note)
        self.stdout.write(f"{waiting:,} wait to be decided on, under Review.")


def _usd(amount: Decimal | None) -> str:
    return "an unknown price" if amount is None else f"${amount.normalize():f}"


def _as_json(dreamt: Dreamt, waiting: int) -> dict[str, Any]:
    detail = dreamt.activity.detail if dreamt.activity else {}
    return {**detail, "waiting": waiting}


def _estimate_as_json(before: Estimate) -> dict[str, Any]:
    return {
        "model": before.model,
        "facts": before.facts,
        "feedback": before.feedback,
        "messages": before.messages,
        "likely_usd": None if before.likely.usd is None else str(before.likely.usd),
        "likely_tokens": before.likely.tokens,
        "most_usd": None if before.most.usd is None else str(before.most.usd),
        "most_tokens": before.most.tokens,
        "fits": before.fits,
        "notes": list(before.notes),
    }
