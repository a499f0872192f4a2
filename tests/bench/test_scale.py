from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from bench.synthetic_rows import MessageGenerator, fill
from palace.models import Drawer, Passage, Posting
from palace.recall.index.corpus_stats import read_stats_of
from palace.storage.indexing.spaces import active_space
from tests.storage.indexing.test_postings import bm25, found


@pytest.mark.lengthy
@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_it_measures_and_leaves_nothing_behind():
    out, err = StringIO(), StringIO()
    call_command(
        "bench_scale",
        drawers=[60, 200],
        client_drawers=60,
        clients=2,
        messages=40,
        stdout=out,
        stderr=err,
    )
    report = json.loads(out.getvalue())
    assert [row["drawers"] for row in report["palaces"]] == [60, 200]
    assert report["alone"]["drawers"] == 60
    for row in report["palaces"]:
        # A difference of two medians, of a few milliseconds: on a busy machine below 0, too.
        assert isinstance(row["recall_p50_ms"], float)
        assert row["with_embedding_p50_ms"] > 0
    assert report["clients"]["clients"] == 2
    for kind in ("threads", "processes"):
        assert report["clients"][kind]["with_embedding_per_s"] > 0
    assert report["bytes_a_drawer"]["index"] > 800
    assert report["intake"]["mined_per_s"] > 0
    assert "recall p50" in err.getvalue()
    assert not Drawer.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regnamespace('bench_scale')")
        assert cursor.fetchone() == (None,)


@pytest.mark.parametrize("sizes", ["many", "10,x", "0", ""])
def test_sizes_that_are_none_are_refused(sizes):
    with pytest.raises(CommandError, match="is no list of sizes"):
        call_command("bench_scale", "--drawers", sizes)


@pytest.mark.exhaustive
@pytest.mark.django_db
def test_what_is_written_in_bulk_is_what_mining_writes(palace):
    space = active_space()
    fill(palace, space, MessageGenerator(space, subjects=10), 250)
    drawers = Drawer.objects.within(palace)
    assert drawers.exclude(mined_at=None).exclude(closet=None).count() == 250
    assert Passage.objects.filter(palace=palace, space=space).exclude(bits=None).count() == 250
    census = read_stats_of(palace)
    assert census.number == 250
    assert census.total == sum(drawers.values_list("terms", flat=True))
    assert not Posting.objects.filter(palace=palace, drawers=b"").exists()
    texts = dict(drawers.values_list("pk", "text"))
    question = " ".join(list(texts.values())[:3])
    assert found(palace, question) == pytest.approx(bm25(texts, question), rel=1e-4)
