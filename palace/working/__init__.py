"""Working memory: entries and fields in Redis, short-lived, which expire by themselves.

Others import from here what entries and fields need; `ledger` and `redis_store`
stand alone.
"""

from palace.working.entries import (
    DEFAULT_LIMIT,
    Entry,
    delete_entry,
    entries_in,
    entries_under,
    get_entry,
    inventory,
    namespaces,
    search_entries,
    set_entry,
    time_left,
)
from palace.working.fields import (
    ENTITIES,
    MOST_FIELDS_BYTES,
    SCRATCHPAD,
    ConversationFields,
    delete_fields,
    get_field,
    get_fields,
    list_conversations,
    peek_conversation,
    put_fields,
)
from palace.working.names import NAMESPACE_KINDS, Namespace, name_of, prefix_of

__all__ = [
    "DEFAULT_LIMIT",
    "ENTITIES",
    "MOST_FIELDS_BYTES",
    "NAMESPACE_KINDS",
    "SCRATCHPAD",
    "ConversationFields",
    "Entry",
    "Namespace",
    "delete_entry",
    "delete_fields",
    "entries_in",
    "entries_under",
    "get_entry",
    "get_field",
    "get_fields",
    "inventory",
    "list_conversations",
    "name_of",
    "namespaces",
    "peek_conversation",
    "prefix_of",
    "put_fields",
    "search_entries",
    "set_entry",
    "time_left",
]
