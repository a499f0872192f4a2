"""A tool's arguments that are wrong: which, and why."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from api.mcp.registry import sentence_of
from api.mcp.tools import TOOLS


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("recall", {"question": "bees"}, "question: there is no such argument"),
        ("recall", {"query": "x" * 4001}, "query: String should have at most 4000 characters."),
        ("facts_as_of", {"query": "x" * 4001}, "at most 4000 characters"),
        ("search_working_memory", {"query": "x" * 4001}, "at most 4000 characters"),
        ("save_memory", {"content": "x", "category": "x" * 201}, "at most 200 characters"),
        ("save_memory", {"content": "x", "tags": ["x" * 201]}, "tags.0: String should have"),
        ("save_memory", {"content": "x", "tags": ["\0"]}, "tags.0: it contains a character"),
        ("search", {"query": " "}, "query: it is blank."),
        ("recall", {}, "query: Field required."),
    ],
)
def test_a_wrong_argument_is_named_in_a_sentence(tool, arguments, said):
    with pytest.raises(ValidationError) as caught:
        TOOLS[tool].request.model_validate(arguments)
    assert said in sentence_of(caught.value)
