"""The SDK: `from locipalace.sdk import Memory`, or AsyncMemory; a palace in this process.

It has the names of `palace.sdk`, and finds the installed program's packages.
"""

from locipalace import installation

installation.enter_beside_others()

from palace.sdk import (  # noqa: E402
    AddResults,
    AsyncMemory,
    BadFilter,
    BadInput,
    Deleted,
    EmbeddingError,
    EmptyQuery,
    EntryItem,
    EpisodeItem,
    FactConflict,
    HistoryRecord,
    KeptWords,
    LLMError,
    Memory,
    MemoryEvent,
    MemoryItem,
    MemoryResults,
    NamespaceFull,
    NotFoundError,
    NotItsOwn,
    PalaceError,
    QuotaExceeded,
    ScopeError,
    SetupError,
    TooMuch,
    UpdatedItem,
    VectorStoreError,
    WorkingMemoryAway,
    WrongPalace,
    open_vector_store,
)

__all__ = [
    "AddResults",
    "AsyncMemory",
    "BadFilter",
    "BadInput",
    "Deleted",
    "EmbeddingError",
    "EmptyQuery",
    "EntryItem",
    "EpisodeItem",
    "FactConflict",
    "HistoryRecord",
    "KeptWords",
    "LLMError",
    "Memory",
    "MemoryEvent",
    "MemoryItem",
    "MemoryResults",
    "NamespaceFull",
    "NotFoundError",
    "NotItsOwn",
    "PalaceError",
    "QuotaExceeded",
    "ScopeError",
    "SetupError",
    "TooMuch",
    "UpdatedItem",
    "VectorStoreError",
    "WorkingMemoryAway",
    "WrongPalace",
    "open_vector_store",
]
