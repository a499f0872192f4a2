"""Imports run by hand, and what they stored."""

from __future__ import annotations

from palace.models import Drawer
from palace.transfer import import_jobs


def run_slice(job, **options):
    import_jobs.start(job)
    return import_jobs.run_slice(job, **options)


def run_to_the_end(job):
    while not run_slice(job):
        pass
    return import_jobs.receipt(job)


def run_import(palace, path):
    return run_to_the_end(import_jobs.preview(palace, path))


def counted(receipt):
    return {name: receipt[name] for name in ("in", "stored", "present", "skipped", "waiting")}


def drawers(palace):
    found = Drawer.objects.filter(palace=palace).in_order()
    return [(drawer.conversation, drawer.external_id, drawer.text) for drawer in found]
