"""Reading a window without a language model; without an embedder by words alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from language.english.topics.draft import Draft, draft
from language.english.topics.window import read_window
from language.extraction import Context, Embed, Extraction, Vectors
from language.transcripts import Turn
from llm.errors import LLMError


def extract(
    window: Sequence[Turn],
    vectors: Vectors | None,
    context: Context,
    embed: Embed,
    drafted: Draft | None = None,
) -> Extraction:
    """Read a window of at least one turn; see `palace.mining.window_reader.Extractor`."""
    try:
        drafted = drafted or draft(window, vectors, context)
        return read_window(drafted, window, vectors, context, embed)
    except LLMError as error:
        note = f"Topics and wing were found by words alone. {error}"
        alone = read_window(draft(window, None, context), window, None, context, embed)
        return dataclasses.replace(alone, notes=(note,))
