"""Recall: questions into drawers, facts and a context block for a model.

Other rooms import from here, and from `recipes`, `trace` and `evaluation`; benchmarks also fit the
floor of `relevance`.
"""

from language.storable import MOST_QUERY_CHARS, normalize_query
from palace.recall.context_builder import Citation, remove_hits
from palace.recall.context_escaping import on_one_line, quoted
from palace.recall.context_lines import ASK_FIRST, PackableTurn
from palace.recall.deduplication import (
    DRAWER_ITEM,
    FACT_ITEM,
    Carried,
    ConversationState,
    load_carried,
)
from palace.recall.entity_graph import HOPS, Walk, named_entities, walk
from palace.recall.evaluation import NOT_CHOSEN_FROM, NOT_SEARCHABLE, Standing, standing_of
from palace.recall.facts import RecalledFact, Source, fact_floor, facts_for
from palace.recall.model_stages import describe_move
from palace.recall.query import (
    E5,
    LEARNT_FOLDER,
    MINILM,
    Query,
    apply_map,
    read_query,
    trained_embedder,
)
from palace.recall.request import (
    MOST_HITS,
    MOST_TOKENS,
    Hit,
    Narrowing,
    RecallRequest,
    Recollection,
    read_request_context,
)
from palace.recall.retrieval import Found, candidate_features, recall, search
from palace.recall.scoring import ranking
from palace.recall.stages import STAGES, RecipeGiven, recipe_given, stages_of

__all__ = [
    "ASK_FIRST",
    "DRAWER_ITEM",
    "E5",
    "FACT_ITEM",
    "HOPS",
    "LEARNT_FOLDER",
    "MINILM",
    "MOST_HITS",
    "MOST_QUERY_CHARS",
    "MOST_TOKENS",
    "NOT_CHOSEN_FROM",
    "NOT_SEARCHABLE",
    "STAGES",
    "Carried",
    "Citation",
    "ConversationState",
    "Found",
    "Hit",
    "Narrowing",
    "PackableTurn",
    "Query",
    "RecallRequest",
    "RecalledFact",
    "RecipeGiven",
    "Recollection",
    "Source",
    "Standing",
    "Walk",
    "apply_map",
    "candidate_features",
    "describe_move",
    "fact_floor",
    "facts_for",
    "load_carried",
    "named_entities",
    "normalize_query",
    "on_one_line",
    "quoted",
    "ranking",
    "read_query",
    "read_request_context",
    "recall",
    "recipe_given",
    "remove_hits",
    "search",
    "stages_of",
    "standing_of",
    "trained_embedder",
    "walk",
]
