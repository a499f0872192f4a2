"""JSON with comments: changed in place, and read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locipalace.cli.json_text import changed, read

SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "//", "/*", 'a"b,}'])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
CALM = st.sampled_from(["", " "])
WILD = st.sampled_from(["", "", " ", "\n  ", "\n\t", '// "a": 1,\n', "/* }, { */", "\r\n"])


@st.composite
def texts(draw, value):
    """A text of this value, some with comments, and commas at the end."""
    between = draw(st.sampled_from([CALM, WILD]))

    def rendered(part):
        if not isinstance(part, list | dict):
            return json.dumps(part)
        is_object = isinstance(part, dict)
        names = [f"{json.dumps(name)}{draw(between)}:" for name in part] if is_object else []
        inner = [rendered(each) for each in (part.values() if is_object else part)]
        rows = [
            f"{draw(between)}{name}{draw(between)}{each}{draw(between)}"
            for name, each in zip(names or [""] * len(inner), inner, strict=True)
        ]
        last = "," if rows and draw(st.booleans()) else ""
        begin, end = "{}" if is_object else "[]"
        return f"{begin}{','.join(rows)}{last}{draw(between)}{end}"

    return f"{draw(between)}{rendered(value)}{draw(between)}"


@given(st.data(), OBJECTS, OBJECTS)
def test_what_is_changed_reads_as_what_was_wanted(data, value, wanted):
    text = data.draw(texts(value))
    assert read(text) == value
    assert changed(text, value) == text
    assert read(changed(text, wanted)) == wanted


@given(st.data(), OBJECTS)
def test_what_is_put_in_and_taken_out_leaves_all_comments(data, value):
    text = data.draw(texts(value))
    within = changed(text, {**value, "new": {"list": [1, {}]}})
    after = changed(within, value)
    for comment in ('// "a": 1,', "/* }, { */"):
        assert within.count(comment) == after.count(comment) == text.count(comment)


def test_a_comment_that_ends_the_file_stays_a_comment():
    text = changed("// none", {"new": [1]})
    assert text.startswith("// none\n")
    assert read(text) == {"new": [1]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "new": [\n    1\n  ]\n}\n'),
        ("{}", '{\n  "new": [\n    1\n  ]\n}'),
        ('{"a": 1}', '{"a": 1, "new": [1]}'),
        ('{"a": 1,}', '{"a": 1, "new": [1],}'),
        ('{\n\t"a": 1 // one\n}\n', '{\n\t"a": 1, // one\n\t"new": [\n\t\t1\n\t]\n}\n'),
        ('{\n    "a": 1,\n}', '{\n    "a": 1,\n    "new": [\n        1\n    ],\n}'),
        ("// none\n{ // yet\n}", '// none\n{ // yet\n  "new": [\n    1\n  ]\n}'),
    ],
)
def test_a_member_gets_the_form_of_the_others(text, expected):
    before = read(text)
    assert changed(text, {**before, "new": [1]}) == expected
    assert read(changed(expected, before)) == before
