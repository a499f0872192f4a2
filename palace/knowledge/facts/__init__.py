"""Facts: learnt from messages, judged against known ones, changed by hand, and queried."""

from palace.knowledge.facts.direct_writes import (
    VERBATIM_ROLES,
    WRONG,
    by_person,
    end_on,
    renamed,
    store_verbatim,
    undo_edit,
    undo_end,
)
from palace.knowledge.facts.evidence_support import (
    BY_TRASH,
    WORDS_ARE_BACK,
    delete_supported_by,
    reopen_ended,
    restore_supported,
    retire_unsupported,
)
from palace.knowledge.facts.fact_chains import append_to_chain
from palace.knowledge.facts.fact_extraction import (
    ExtractionOptions,
    Scope,
    forget_model_answers,
    have_options,
    memories_about,
    store_options,
)
from palace.knowledge.facts.fact_learning import (
    BY_MINING,
    Learnt,
    learn_room,
    learn_unread,
    remember,
    write_read,
)
from palace.knowledge.facts.fact_writer import (
    TOOK_ITS_PLACE,
    StatementOutcome,
    record_event,
    retire,
    take_over_evidence,
)
from palace.knowledge.facts.late_statements import scopes_of
from palace.knowledge.facts.row_conversion import Details, entity_for, find_entity
from palace.knowledge.facts.unsure_facts import Effect, effects_of

__all__ = [
    "BY_MINING",
    "BY_TRASH",
    "TOOK_ITS_PLACE",
    "VERBATIM_ROLES",
    "WORDS_ARE_BACK",
    "WRONG",
    "Details",
    "Effect",
    "ExtractionOptions",
    "Learnt",
    "Scope",
    "StatementOutcome",
    "append_to_chain",
    "by_person",
    "delete_supported_by",
    "effects_of",
    "end_on",
    "entity_for",
    "find_entity",
    "forget_model_answers",
    "have_options",
    "learn_room",
    "learn_unread",
    "memories_about",
    "record_event",
    "remember",
    "renamed",
    "reopen_ended",
    "restore_supported",
    "retire",
    "retire_unsupported",
    "scopes_of",
    "store_options",
    "store_verbatim",
    "take_over_evidence",
    "undo_edit",
    "undo_end",
    "write_read",
]
