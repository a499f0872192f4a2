"""Memory for programs: `from palace.sdk import Memory`, or AsyncMemory.

Importing it sets Django up, where that has not been done; `Memory(owner=…)` starts what is needed.
"""

from palace.sdk import process
from palace.sdk.errors import (
    BadFilter,
    BadInput,
    EmbeddingError,
    EmptyQuery,
    FactConflict,
    LLMError,
    NamespaceFull,
    NotFoundError,
    NotItsOwn,
    PalaceError,
    ScopeError,
    SetupError,
    TooMuch,
    VectorStoreError,
    WorkingMemoryAway,
    WrongPalace,
)
from palace.sdk.results import (
    AddResults,
    Deleted,
    EntryItem,
    EpisodeItem,
    HistoryRecord,
    KeptWords,
    MemoryEvent,
    MemoryItem,
    MemoryResults,
    UpdatedItem,
)

process.set_up_django()

# Tables can be imported only from here on.
from palace.sdk.asynchronous import AsyncMemory  # noqa: E402
from palace.sdk.memory import Memory  # noqa: E402

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
    "ScopeError",
    "SetupError",
    "TooMuch",
    "UpdatedItem",
    "VectorStoreError",
    "WorkingMemoryAway",
    "WrongPalace",
]
