from __future__ import annotations

import re

import pytest
from django.conf import settings

CLASS = re.compile(r"\.([a-z][a-z0-9-]*)")
# Parts of the frame, which surrounds every page.
FRAME = {"brand", "notice", "shown", "skip", "top", "top-inner"}
# Widths of whole pages.
WIDTHS = {"narrow", "results"}


def classes_of(sheet):
    """The names in the selectors of a style sheet."""
    text = (settings.BASE_DIR / "static" / "css" / sheet).read_text()
    rules = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    selectors = re.findall(r"([^{}]+)\{", rules)
    return {name for selector in selectors for name in CLASS.findall(selector)}


@pytest.mark.parametrize("sheet", ["base.css", "frame.css"])
def test_every_shared_style_is_shown_among_the_components(alices, sheet):
    text = alices.get("/components/").text
    shown = {name for names in re.findall(r'class="([^"]+)"', text) for name in names.split()}
    missing = classes_of(sheet) - shown - FRAME - WIDTHS
    assert missing == set()


def test_every_room_of_a_plan_is_shown_in_every_state(alices):
    text = alices.get("/components/").text
    for state in ("age-0", "age-1", "age-2", "age-3", "age-4", "age-0 lit", "age-0 later"):
        assert f'class="plan-room {state}"' in text


@pytest.mark.parametrize(
    ("page", "word"), [("wing", "wing"), ("room", "room"), ("closet", "closet")]
)
def test_words_of_the_palace_are_explained_where_they_stand(alices, request, drawer, page, word):
    text = alices.get(request.getfixturevalue(page).get_absolute_url()).text
    assert f'popovertarget="explain-{word}" aria-label="What is a {word}?"' in text
    assert re.search(rf'id="explain-{word}" popover>A {word} (is|holds) ', text)


@pytest.mark.parametrize("view", ["", "list"])
def test_the_palace_explains_each_of_its_words_once(alices, drawer, view):
    text = alices.get("/memory/", {"view": view}).text
    for word in ("wing", "room", "drawer", "pointer"):
        assert text.count(f'popovertarget="explain-{word}"') == 1
        assert text.count(f'id="explain-{word}"') == 1


def test_a_drawers_page_explains_its_pointer_and_folds_its_tags(alices, drawer):
    text = alices.get(drawer.get_absolute_url()).text
    assert "What is a drawer?" in text
    assert "What is a pointer?" in text
    assert text.index("<span>Tags</span></summary>") < text.index("Derek")
