"""The base of Loci's own commands."""

from __future__ import annotations

from django.core.management.base import BaseCommand

from llm.checks import TAG


class LociCommand(BaseCommand):
    """A command that first checks the models in use.

    Django's other checks import every page and tag, which takes longer than most commands do;
    `manage.py check` and `manage.py migrate` run them.
    """

    requires_system_checks = (TAG,)
