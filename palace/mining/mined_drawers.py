"""What mining writes of the drawers themselves: passages, postings, and that they are mined."""

from __future__ import annotations

from collections.abc import Sequence

from language.analyzer import analyze
from palace.mining.marking import mark_mined
from palace.models import Drawer, Palace
from palace.storage.indexing import passages, postings
from palace.storage.indexing.passages import Embedded
from palace.storage.indexing.traits import read_traits


def write_mined(
    palace: Palace, drawers: Sequence[Drawer], embedded: Embedded, written: Sequence[Drawer]
) -> None:
    """Call it in a transaction that holds the palace and the drawers.

    Args:
        drawers: Those that were embedded, in that order.
        written: Those of them to write, with their closets, tags and preferences.
    """
    terms = {drawer.pk: analyze(drawer.text) for drawer in written}
    passages.store(palace, [drawer.pk for drawer in drawers], embedded, only=terms)
    postings.append(palace, terms)
    for drawer in written:
        drawer.terms = terms[drawer.pk].total()
        drawer.traits = int(read_traits(drawer.text))
    mark_mined(palace, written)
