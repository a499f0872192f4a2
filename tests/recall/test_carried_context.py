"""What stood in the block before stays behind what is new, as far as there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.tokens import count_tokens
from palace.models.hierarchy import Pointer
from palace.recall.context_builder import Citation, pack
from tests.recall.test_context_builder import (
    LONG,
    MEMORY,
    PLACE,
    Stated,
    budgets,
    hit,
    many_facts,
    many_hits,
    many_turns,
)

many_carried = st.lists(
    st.sampled_from(
        [
            hit(101, "It smelt."),
            hit(102, LONG),
            hit(103, LONG, (0, 38)),
            Stated("Ana is a nurse"),
            Stated(LONG),
        ]
    ),
    max_size=8,
)


@given(many_hits, many_facts, many_turns, many_carried, budgets)
def test_the_budget_is_never_exceeded(hits, facts, session, carried, budget):
    packed = pack(hits, budget, facts, session, carried=carried)
    assert count_tokens(packed.context) <= budget
    assert sorted((*packed.carried, *packed.carried_left_out)) == list(range(len(carried)))
    assert packed.context.count("\n[") + packed.context.count("\n- ") >= len(packed.citations)


@given(many_hits, many_facts, many_turns, many_carried, budgets)
def test_nothing_new_is_left_out_for_it(hits, facts, session, carried, budget):
    alone = pack(hits, budget, facts, session)
    with_it = pack(hits, budget, facts, session, carried=carried)
    assert (with_it.left_out, with_it.shortened) == (alone.left_out, alone.shortened)
    assert (with_it.facts, with_it.turns) == (alone.facts, alone.turns)


@pytest.mark.parametrize("budget", range(240, 260, 2))
def test_its_heading_takes_no_room_of_a_fact(budget):
    """The heading of the hits is there only for what is carried."""
    facts = [Stated(text) for text in ("0 1 2 3", "𝔘" * 30, "a\n\n\nb", "é" * 20, "Short.")]
    alone = pack([], budget, facts)
    assert pack([], budget, facts, carried=[hit(103, LONG, (0, 38))]).facts == alone.facts


def test_facts_stay_among_facts_and_hits_among_hits():
    carried = [hit(2, "Then it smelt."), Stated("Ana is a nurse"), hit(3, LONG, (0, 38))]
    packed = pack([hit(1, "The wire overheated.")], None, [Stated("Ana sings")], carried=carried)
    lines = packed.context.splitlines()
    assert lines.index("- [§ W-009/R-09/D-009] Ana sings") + 1 == lines.index(
        "- [§ W-009/R-09/D-009] Ana is a nurse"
    )
    assert packed.citations == (
        Citation(PLACE, MEMORY),
        Citation(PLACE, MEMORY),
        Citation(Pointer(1, 1, 1)),
        Citation(Pointer(1, 1, 2)),
        Citation(Pointer(1, 1, 3)),
    )
    assert packed.context.endswith(
        "The wire overheated after ten minutes. […]\n\n</memory_context>"
    ), "No more of it than before."


def test_the_oldest_have_to_go_first():
    carried = [hit(n, f"{n} {LONG}") for n in range(1, 9)]
    packed = pack([hit(20, LONG)], 1200, carried=carried)
    assert packed.left_out == ()
    assert 0 < len(packed.carried) < len(carried)
    assert packed.carried == tuple(range(len(packed.carried)))


def test_alone_it_is_a_block_too():
    carried = [Stated("Ana is a nurse")]
    assert "Known facts:\n- [§" in pack([], 200, carried=carried).context
    assert "- [§" in pack([], None, carried=carried).context
    assert pack([], 10, carried=carried).context == ""
