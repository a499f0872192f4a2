from __future__ import annotations

import json
import os
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from bench import charts
from bench.charts import Bar, Speed
from bench.figures import SHOWN, learnt_from, rewritten
from bench.metrics import retrieval_report

SVG = "{http://www.w3.org/2000/svg}"
MARKS = ("learnt", *SHOWN, "peers", *(f"peers-{name}" for name in SHOWN), "scale", "ablate", "log")


def block(name, text="Not measured yet."):
    return f"<!-- figures:{name} -->\n{text}\n<!-- /figures -->\n"


def asked(kind, rank, *, turns=20):
    """A line of a retrieval log; what answers stands at `rank`, from 0."""
    hits = [{"session": f"s{place}", "turn": f"s{place}/0"} for place in range(turns)]
    gold = {"gold_sessions": [f"s{rank}"], "gold_turns": [f"s{rank}/0"]}
    return {"type": kind, "hits": hits, "latency_ms": 12.5, **gold}


def report(*ranks):
    return retrieval_report([asked("single-hop", rank) for rank in ranks])


def locomo(sha="0" * 64, ranks=(0, 3, 12, 30)):
    return {"dataset": "locomo", "sha256": sha, **report(*ranks)}


def peers(sha="0" * 64):
    rest = {
        "latency_ten_ms": {"p50": 6.5, "p95": 9.0},
        "ingest": {"messages": 10, "seconds": 1.0, "messages_per_s": 10.0},
        "disk_bytes_per_message": 4315,
        "memory_mb": {"process_peak": 300, "database": 70},
    }
    systems = {
        "loci": {"title": "Loci 1", **report(0, 3, 12, 30), **rest},
        "other": {"title": "Other <2> & co", **report(12, 12, 12, 30), **rest},
    }
    return {"dataset": "locomo", "sha256": sha, "systems": systems, "failed": {"mem0": "It fell."}}


def scale():
    palaces = [
        {
            "drawers": size,
            "recall_p50_ms": ms,
            "recall_p95_ms": 2 * ms,
            "with_embedding_p50_ms": ms + 8,
            "with_embedding_p95_ms": 2 * ms + 8,
            "embedding_p50_ms": 8.0,
            "numpy_p50_ms": ms / 100,
        }
        for size, ms in ((1000, 4.0), (100_000, 31.0))
    ]
    rates = {"recalls_per_s": 101.0, "with_embedding_per_s": 60.0, "embedding_per_s": 150.0}
    return {
        "alone": None,
        "palaces": palaces,
        "clients": {"clients": 8, "drawers": 1000, "threads": rates, "processes": rates},
        "bytes_a_drawer": {"index": 1318, "passages": 1025, "postings": 293, "text": 218},
        "intake": {"mined_per_s": 98.0, "embedded_per_s": 114.0, "mined_of_embedded": 0.86},
    }


def ablation():
    whole = {"locomo": {"turn_recall@10": 0.871}}
    without = {
        "time": {"locomo": {"turn_recall@10": 0.004}},
        "meaning": {"locomo": {"turn_recall@10": -0.121}},
    }
    return {"recipe": "default", "refit": False, "data": {}, "all": whole, "without": without}


@pytest.fixture
def results(tmp_path):
    """Give `results(name=report, …)`: a folder of them, as commands write them."""
    folder = tmp_path / "results"
    folder.mkdir()

    def fill(**reports):
        for name, said in reports.items():
            path = folder / f"{name.replace('_', '-')}.json"
            path.write_text(f"something before\n{json.dumps(said)}\n")
            os.utime(path, (1_790_000_000, 1_790_000_000))
        return folder

    return fill


@pytest.fixture
def draw(tmp_path):
    """Run the command on a page of our own; what it said, in `out` and `err`."""
    page, readme, out = tmp_path / "page.md", tmp_path / "readme.md", tmp_path / "img"
    page.write_text("# Page\n\n" + "\n".join(map(block, MARKS)) + "\nThe end.\n")
    readme.write_text("# Readme\n\n" + block("summary"))

    def draw(folder, **options):
        said, errors = StringIO(), StringIO()
        places = {"results": folder, "out": out, "page": page, "readme": readme}
        call_command("bench_charts", **places, **options, stdout=said, stderr=errors)
        return said.getvalue(), errors.getvalue()

    draw.page, draw.readme, draw.out = page, readme, out
    return draw


def drawn(svg):
    return ElementTree.fromstring(svg)  # noqa: S314 - drawn by ourselves.


def words(svg):
    return [text.text for text in drawn(svg).iter(f"{SVG}text")]


def test_tables_and_charts_come_from_what_the_commands_printed(results, draw):
    folder = results(locomo=locomo(), peers_locomo=peers(), scale=scale(), ablate=ablation())
    draw(folder, write=True, commit="abc1234", hardware="an abacus")
    page = draw.page.read_text()
    assert "| turn_recall@10 | 4 | .500 [" in page
    assert "not fitted on this file" in page
    assert "| Other <2> & co | .000 [.000, .000] |" in page
    assert "Not measured: It fell." in page
    assert "| 100,000 | 31 | 62 | – | 39 | 70 | 0.31 | 8.0 |" in page
    assert page.index("| meaning | +12.1 |") < page.index("| time | −0.4 |")
    assert "| 2026-09-21 | abc1234 | `locomo full --data …` | 00000000 | an abacus |" in page
    assert "(img/benchmarks-scale.svg)" in page
    assert page.startswith("# Page\n")
    assert page.endswith("The end.\n")
    assert {path.name for path in draw.out.iterdir()} == {
        f"benchmarks-{name}.svg" for name in ("peers", "scale", "ablate")
    }


def test_what_is_missing_is_named_and_left_as_it_is(results, draw):
    _, errors = draw(results(scale=scale()), write=True)
    assert "There is no locomo.json; what it would show stays as it is." in errors
    page = draw.page.read_text()
    assert block("locomo") in page
    assert block("scale") not in page
    assert not (draw.out / "benchmarks-peers.svg").exists()


def test_writing_again_changes_nothing(results, draw):
    folder = results(locomo=locomo(), scale=scale())
    draw(folder, write=True, commit="abc1234")
    once = draw.page.read_text(), draw.readme.read_text()
    draw(folder, write=True, commit="abc1234")
    assert (draw.page.read_text(), draw.readme.read_text()) == once


def test_the_log_keeps_what_was_measured_before(results, draw):
    folder = results(scale=scale())
    draw(folder, write=True, commit="first")
    draw(folder, write=True, commit="second")
    page = draw.page.read_text()
    assert page.index("| first |") < page.index("| second |")
    assert page.count("| date |") == 1


def test_without_write_the_tables_are_printed_and_the_page_is_left(results, draw):
    before = draw.page.read_text()
    said, _ = draw(results(locomo=locomo()))
    assert "| turn_recall@10 | 4 |" in said
    assert draw.page.read_text() == before


def test_figures_of_people_left_out_stand_beside_those_of_questions_learnt_from(results, draw):
    learnt = learnt_from()
    sha = learnt["data"]["longmemeval"]
    said, _ = draw(results(longmemeval=locomo(sha) | {"dataset": "longmemeval"}))
    left_out = learnt["figures_of_people_left_out"]["longmemeval"]["turn_recall@10"]
    assert "people left out of the fit |\n" in said
    assert re.search(
        rf"\| turn_recall@10 \| 4 \| \.500 \[.*\| {charts.fraction(left_out)} \|", said
    )
    assert "fitted on these very questions" in said
    assert f"people left out are of all {learnt['questions']['longmemeval']:,}" in said


def test_a_file_that_nothing_was_learnt_from_has_no_people_left_out(results, draw):
    said, _ = draw(results(locomo=locomo(learnt_from()["unseen"]["locomo"])))
    assert "The shipped weights were not fitted on this file." in said
    assert "people left out of the fit |" not in said.partition("| metric")[2]


def test_the_readme_quotes_data_sets_that_nothing_was_learnt_from(results, draw):
    draw(results(scale=scale()), write=True)
    unseen = learnt_from()["figures_of_unseen"]
    readme = draw.readme.read_text()
    assert charts.fraction(unseen["locomo"]["turn_recall@10"]) in readme
    assert charts.fraction(unseen["beam"]["turn_recall@10"]) in readme


def test_peers_measured_with_another_ranking_are_reported(results, draw):
    folder = results(locomo=locomo(ranks=(0, 3, 4, 30)), peers_locomo=peers())
    said, _ = draw(folder)
    assert "another state of its ranking" in said
    said, _ = draw(results(locomo=locomo(), peers_locomo=peers()))
    assert "another state of its ranking" not in said


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "locomo.json is not what the command prints"),
        ("[]", "it has no dataset"),
        ("{", "locomo.json cannot be read"),
        ('{"dataset": "locomo", "sha256": "0"}', "it has no questions"),
        (json.dumps({**locomo(), "dataset": "beam"}), "locomo.json holds the figures of beam"),
        (json.dumps({**locomo(), "metrics": {}}), "lacks something: KeyError"),
    ],
)
def test_a_file_that_is_none_is_refused_with_a_sentence(results, draw, text, complaint):
    folder = results()
    (folder / "locomo.json").write_text(text)
    with pytest.raises(CommandError, match=complaint):
        draw(folder, write=True)
    assert block("locomo") in draw.page.read_text()


def test_no_folder_and_an_empty_one_are_refused(results, draw, tmp_path):
    with pytest.raises(CommandError, match="There is no folder"):
        draw(tmp_path / "nowhere")
    with pytest.raises(CommandError, match="holds nothing"):
        draw(results())


def test_a_page_without_the_marks_is_refused_and_left(results, draw):
    draw.page.write_text("# Bare\n")
    with pytest.raises(CommandError, match="no block <!-- figures:"):
        draw(results(scale=scale()), write=True)
    assert draw.page.read_text() == "# Bare\n"


def test_text_goes_between_its_own_marks_alone():
    page = block("one", "1") + block("two", "2")
    assert rewritten(page, "one", r"\1 |") == block("one", r"\1 |") + block("two", "2")


def test_the_projects_own_page_has_every_mark():
    docs = Path(settings.BASE_DIR)
    page = (docs / "docs" / "benchmarks.md").read_text()
    assert [name for name in MARKS if f"<!-- figures:{name} -->\n" not in page] == []
    assert "<!-- figures:summary -->\n" in (docs / "README.md").read_text()


def bars(*values):
    return [Bar(f"n{at}", value, (value, value), at == 0) for at, value in enumerate(values)]


def test_bars_are_as_long_as_their_values():
    svg = charts.beside_peers({"a metric": bars(0.8, 0.4, 0.0)})
    widths = [
        float(rect.get("width"))
        for rect in drawn(svg).iter(f"{SVG}rect")
        if rect.get("class") in ("bar", "other")
    ]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == 0
    assert {".800", ".400", ".000"} <= set(words(svg))


def test_a_chart_has_all_its_figures_in_words():
    svg = charts.beside_peers({"a <metric> & more": bars(0.8, 0.4)})
    root = drawn(svg)
    assert root.get("role") == "img"
    assert [root.find(f"{SVG}{part}").get("id") for part in ("title", "desc")] == ["title", "desc"]
    assert "a <metric> & more: n0 .800, n1 .400." in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text


def test_what_gains_without_a_signal_goes_to_the_left_and_has_an_outline():
    svg = charts.what_signals_give({("LoCoMo", "turn@10"): {"bad": -0.02, "good": 0.04}})
    by_kind = {r.get("class"): r for r in drawn(svg).iter(f"{SVG}rect") if r.get("class")}
    good, bad = by_kind["bar"], by_kind["against"]
    assert float(bad.get("x")) + float(bad.get("width")) == pytest.approx(
        float(good.get("x")), abs=0.2
    )
    assert float(good.get("width")) == pytest.approx(2 * float(bad.get("width")), abs=0.2)
    assert words(svg).index("good") < words(svg).index("bad")
    assert "−2.0" in words(svg)


@pytest.mark.parametrize(
    "speeds",
    [
        [Speed(1000, 4.0, 6.0, 0.0, 8.0)],
        [Speed(10, 0.02, 0.02, 0.02, 0.02), Speed(500_000, 12_000.0, 20_000.0, 32.0, 8.0)],
        [Speed(1000, 10.0, 10.0, 10.0, 10.0), Speed(2000, 10.0, 10.0, 10.0, 10.0)],
    ],
)
def test_speeds_of_any_size_stay_on_the_chart(speeds):
    root = drawn(charts.speed_by_size(speeds))
    height = float(root.get("height"))
    for circle in root.iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cx")) < charts.WIDTH
        assert 0 < float(circle.get("cy")) < height
    below = [float(text.get("y")) for text in root.iter(f"{SVG}text")]
    assert max(below) < height


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0"), (0.0004, "0.0"), (-0.0004, "0.0"), (0.011, "+1.1")]
)
def test_points_have_a_sign_unless_they_are_none(value, text):
    assert charts.points(value) == text
