"""No place stands empty, no entity is named nowhere, no import has lost its file."""

from __future__ import annotations

from palace.audit.finding import Finding, finding, rows_breaking
from palace.models import ImportJob, Palace
from palace.transfer.import_jobs.spools import old_spools, spool_path


def imports_have_their_files(palace: Palace) -> Finding:
    jobs = ImportJob.objects.filter(palace=palace, status__in=ImportJob.UNFINISHED).order_by("pk")
    wrong = [job.uuid for job in jobs if not spool_path(job).is_file()]
    return finding(
        "import-file", "The prepared file of an import that is not finished is there.", wrong
    )


def files_have_their_imports() -> Finding:
    """Of the installation: a file does not say whose it is."""
    wrong = sorted(path.name for path in old_spools())
    return finding("import-orphans", "No prepared file is left without its import.", wrong)


CHECKS = (
    rows_breaking(
        "empty-closet",
        "A closet holds drawers.",
        "SELECT c.uuid FROM palace_closet c WHERE c.palace_id = %(palace)s AND NOT EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = c.palace_id AND d.closet_id = c.id)",
    ),
    rows_breaking(
        "empty-room",
        "A room holds drawers.",
        "SELECT r.uuid FROM palace_room r WHERE r.palace_id = %(palace)s AND NOT EXISTS ("
        "SELECT FROM palace_drawer d WHERE d.palace_id = r.palace_id AND d.room_id = r.id)",
    ),
    rows_breaking(
        "empty-wing",
        "A wing, but for the unsorted one, holds rooms.",
        "SELECT w.uuid FROM palace_wing w WHERE w.palace_id = %(palace)s AND w.number > 0"
        " AND NOT EXISTS (SELECT FROM palace_room r"
        " WHERE r.palace_id = w.palace_id AND r.wing_id = w.id)",
    ),
    rows_breaking(
        "unknown-entity",
        "An entity is mentioned, or a fact is about it.",
        "SELECT e.uuid FROM palace_entity e WHERE e.palace_id = %(palace)s"
        " AND NOT EXISTS (SELECT FROM palace_mention m"
        " WHERE m.palace_id = e.palace_id AND m.entity_id = e.id)"
        " AND NOT EXISTS (SELECT FROM palace_fact f WHERE f.palace_id = e.palace_id"
        " AND (f.subject_id = e.id OR f.object_entity_id = e.id))",
    ),
    imports_have_their_files,
)
