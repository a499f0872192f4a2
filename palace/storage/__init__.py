"""Storage: messages into drawers, and the indexes that find drawers.

Other rooms import from here, and from `spaces`, `postings`, `fact_vectors` and `episode_vectors`.
"""

from llm.database_writes import commit_without_waiting
from palace.storage.bulk_insert import insert_rows
from palace.storage.indexing import check_vector_store, server_store
from palace.storage.indexing.fact_vectors import (
    count_fact_vectors,
    rebuild_fact_vectors,
    tidy_fact_vectors,
)
from palace.storage.indexing.fact_vectors import fill_batch as fill_fact_vectors
from palace.storage.indexing.passages import (
    MAX_PASSAGES,
    EmbeddedPassages,
    embed_passages,
    split_text,
    store_passages,
)
from palace.storage.indexing.rebuild import (
    build_space,
    drawers_lacking,
    enqueue_embedding,
    fill_missing_vectors,
    rebuild_old_postings,
    rebuild_passages,
    rebuild_postings,
    reembed,
    switch_to_space,
)
from palace.storage.intake import (
    TEXT_DIGEST,
    Quota,
    Usage,
    check_quota,
    emptied_again,
    known_wing,
    message_key,
    next_room_number,
    palace_quota,
    put_wing_back,
    record_accepted,
    record_purged,
    unsorted_wing,
    usage_of,
    wing_for,
)
from palace.storage.own_answers import without_loci_answers
from palace.storage.own_output import (
    BLOCK_END,
    BLOCK_START,
    SEAL_LENGTH,
    SEAL_TOKENS,
    UNSEALED,
    own_words,
    sealed,
)
from palace.storage.transcript_filing import (
    UNTITLED,
    Filed,
    file_transcript,
    file_transcripts,
)

__all__ = [
    "BLOCK_END",
    "BLOCK_START",
    "MAX_PASSAGES",
    "SEAL_LENGTH",
    "SEAL_TOKENS",
    "TEXT_DIGEST",
    "UNSEALED",
    "UNTITLED",
    "EmbeddedPassages",
    "Filed",
    "Quota",
    "Usage",
    "build_space",
    "check_quota",
    "check_vector_store",
    "commit_without_waiting",
    "count_fact_vectors",
    "drawers_lacking",
    "embed_passages",
    "emptied_again",
    "enqueue_embedding",
    "file_transcript",
    "file_transcripts",
    "fill_fact_vectors",
    "fill_missing_vectors",
    "insert_rows",
    "known_wing",
    "message_key",
    "next_room_number",
    "own_words",
    "palace_quota",
    "put_wing_back",
    "rebuild_fact_vectors",
    "rebuild_old_postings",
    "rebuild_passages",
    "rebuild_postings",
    "record_accepted",
    "record_purged",
    "reembed",
    "sealed",
    "server_store",
    "split_text",
    "store_passages",
    "switch_to_space",
    "tidy_fact_vectors",
    "unsorted_wing",
    "usage_of",
    "wing_for",
    "without_loci_answers",
]
