"""Import a file: `preview` reads it once, completely; `run_slice` files and mines part of it.

A conversation's drawers and the job's progress are committed together, so a job that is killed at
any moment resumes exactly where it stopped, and every message is counted once.
"""

from palace.transfer.import_jobs.job_state import (
    discard,
    is_worked_on,
    pause,
    receipt,
    standing_still,
    start,
)
from palace.transfer.import_jobs.preparation import (
    SAMPLE_QUESTIONS,
    delete_unused_palace,
    preview,
    preview_in_subprocess,
    sample_job,
    was_imported,
)
from palace.transfer.import_jobs.progress import Progress, filed_by, progress
from palace.transfer.import_jobs.slices import USUAL_LAG, import_chats, run_slice
from palace.transfer.import_jobs.whole_palace import (
    RestoreProgress,
    holds_nothing,
    is_loci_export,
    is_whole,
    whole_in_words,
)
from palace.transfer.importers.formats import FORMATS
from palace.transfer.spools import remove_orphans

__all__ = [
    "FORMATS",
    "SAMPLE_QUESTIONS",
    "USUAL_LAG",
    "Progress",
    "RestoreProgress",
    "delete_unused_palace",
    "discard",
    "filed_by",
    "holds_nothing",
    "import_chats",
    "is_loci_export",
    "is_whole",
    "is_worked_on",
    "pause",
    "preview",
    "preview_in_subprocess",
    "progress",
    "receipt",
    "remove_orphans",
    "run_slice",
    "sample_job",
    "standing_still",
    "start",
    "was_imported",
    "whole_in_words",
]
