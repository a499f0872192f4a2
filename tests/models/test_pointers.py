from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.errors import BadPointer
from palace.models.hierarchy import Pointer, format_tags


@pytest.mark.parametrize("text", ["§ W-042/R-11/D-007", "W-42/R-11/D-7", " § w-042/r-011/d-0007 "])
def test_a_pointer_is_read_however_it_is_written(text):
    assert Pointer.parse(text) == Pointer(42, 11, 7)


def test_a_pointer_is_written_in_one_way():
    assert str(Pointer(42, 11, 7)) == "§ W-042/R-11/D-007"
    assert str(Pointer(1042, 311, 1007)) == "§ W-1042/R-311/D-1007"


@pytest.mark.parametrize("text", ["", "W-1/R-1", "§ W-1/R-1/D-x", "W--1/R-1/D-1", "x W-1/R-1/D-1"])
def test_what_is_no_pointer_is_refused_with_an_example(text):
    with pytest.raises(BadPointer, match="W-042/R-11/D-007"):
        Pointer.parse(text)


def test_tags_come_in_one_order_and_empty_ones_are_left_out():
    assert (
        format_tags({"l": ["Lisbon"], "p": ["Derek", "Ann"], "e": []}) == "@p Derek, Ann @l Lisbon"
    )


NUMBERS = st.integers(0, 10**9 - 1)


@given(st.builds(Pointer, NUMBERS, NUMBERS, NUMBERS))
def test_every_pointer_is_read_as_it_is_written(pointer):
    assert Pointer.parse(str(pointer)) == pointer


@given(st.text(st.characters(codec=None)) | st.from_regex(r"§? ?W-\d+/R-\d+/D-\w+"))
def test_any_text_is_a_pointer_or_gets_an_example(text):
    try:
        pointer = Pointer.parse(text)
    except BadPointer as error:
        shown = str(error)
    else:
        shown = str(pointer)
        assert Pointer.parse(shown) == pointer
    assert "/R-" in shown
    assert shown.encode()
