"""The SDK: `from palace.sdk import Memory`, or AsyncMemory.

Importing it sets up Django if necessary; `Memory(owner=…)` starts the services it needs.
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
    QuotaExceeded,
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

# Models can be imported only after the setup.
from palace.sdk.asynchronous import AsyncMemory  # noqa: E402
from palace.sdk.configuration import open_vector_store  # noqa: E402
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
