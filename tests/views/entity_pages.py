"""What the tests of entities share: facts between two of them, and parts of a page."""

from __future__ import annotations

import html
import re

from django.urls import reverse

from tests.factories import (
    FactFactory,
)


def edge(subject, other, text, predicate="knows", **values):
    return FactFactory(
        subject=subject, object_entity=other, text=text, predicate=predicate, **values
    )


def page(entity):
    return reverse("entity_detail", args=[entity.uuid])


def names(response):
    found = re.findall(r'class="entity-name">(.*?)</span>', response.text)
    return [html.unescape(name) for name in found]


def section(response, name):
    """The part of a page below the heading with this id."""
    found = re.search(rf'id="{name}-title".*?</section>', response.text, re.DOTALL)
    return found[0] if found else ""


def known(response):
    found = re.findall(r'class="fact-text"><a[^>]*>(.*?)</a>', section(response, "known"))
    return [html.unescape(text) for text in found]
