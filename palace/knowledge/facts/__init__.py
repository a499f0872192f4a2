"""Facts: learnt from messages, judged beside known ones, changed by hand, and queried."""

from palace.knowledge.facts.evidence_support import (
    BY_TRASH,
    WORDS_ARE_BACK,
    delete_supported_by,
    reopen_ended,
    restore_supported,
    retire_unsupported,
)
from palace.knowledge.facts.fact_learning import (
    BY_MINING,
    Learnt,
    learn_room,
    learn_unread,
    remember,
    write_read,
)
from palace.knowledge.facts.fact_queries import entities, history, relations, timeline, with_words
from palace.knowledge.facts.fact_writer import (
    TOOK_ITS_PLACE,
    Remembered,
    record_event,
    retire,
    take_over_evidence,
)
from palace.knowledge.facts.ingestion_options import ExtractionOptions, Scope, have_options
from palace.knowledge.facts.model_calls import forget_model_answers
from palace.knowledge.facts.reconciliation import scopes_of
from palace.knowledge.facts.row_conversion import find_entity
from palace.knowledge.facts.supersession import append_to_chain

__all__ = [
    "BY_MINING",
    "BY_TRASH",
    "TOOK_ITS_PLACE",
    "WORDS_ARE_BACK",
    "ExtractionOptions",
    "Learnt",
    "Remembered",
    "Scope",
    "append_to_chain",
    "delete_supported_by",
    "entities",
    "find_entity",
    "forget_model_answers",
    "have_options",
    "history",
    "learn_room",
    "learn_unread",
    "record_event",
    "relations",
    "remember",
    "reopen_ended",
    "restore_supported",
    "retire",
    "retire_unsupported",
    "scopes_of",
    "take_over_evidence",
    "timeline",
    "with_words",
    "write_read",
]
