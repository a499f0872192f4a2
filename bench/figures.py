"""Build the tables of docs/benchmarks.md from the benchmark commands' JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.charts import by_what_they_give, fraction, milliseconds, points
from palace.recall import LEARNT_FOLDER, MINILM

Report = Mapping[str, Any]

# The metrics of each data set's table; those of its chart come first.
SHOWN = {
    "locomo": ("turn_recall@10", "session_recall@10", "turn_recall@20", "session_recall_all@5"),
    "beam": ("turn_recall@10", "turn_recall@20", "turn_recall@5", "turn_recall_any@10"),
    "longmemeval": (
        "session_recall_any@5",
        "session_recall_all@5",
        "session_recall@10",
        "turn_recall@10",
    ),
}
TITLES = {
    "locibench": "LociBench, English people of `train`",
    "locomo": "LoCoMo",
    "beam": "BEAM 100K",
    "longmemeval": "LongMemEval-like",
}
ABLATED = (
    ("locomo", "turn_recall@10"),
    ("beam", "turn_recall@10"),
    ("longmemeval", "session_recall_all@5"),
)
# The columns of the table of speeds, by their names in the report.
SPEEDS = (
    *("recall_p50_ms", "recall_p95_ms", "recall_cpu_p50_ms", "with_embedding_p50_ms"),
    *("with_embedding_p95_ms", "numpy_p50_ms", "embedding_p50_ms"),
)
# The required fields of a result file, by the prefix of its name.
NEEDED = {
    "peers": ("dataset", "sha256", "systems"),
    "scale": ("palaces", "clients", "intake", "bytes_a_drawer"),
    "ablate": ("all", "without", "recipe", "refit"),
    "": ("dataset", "sha256", "questions", "metrics", "latency_ms"),
}
NAMES = (*SHOWN, *(f"peers-{name}" for name in SHOWN), "scale", "ablate")


class BadResults(Exception):
    """A result file is invalid."""


@dataclass(frozen=True, slots=True)
class Result:
    """
    Attributes:
        ended: When the file was written.
    """

    name: str
    report: Report
    ended: datetime

    @property
    def command(self) -> str:
        if self.name.startswith("peers-"):
            return f"bench_peers --dataset {self.name.removeprefix('peers-')} --data …"
        if self.name == "scale":
            sizes = ",".join(str(row["drawers"]) for row in self.report["palaces"])
            return f"bench_scale --drawers {sizes}"
        if self.name == "ablate":
            sets = " ".join(f"--{name} …" for name in self.report["all"])
            return f"ablate {sets}" + (" --refit" if self.report["refit"] else "")
        return f"{self.name} full --data …"


def read_results(folder: Path) -> tuple[dict[str, Result], list[str]]:
    """Results by name, and the names of missing ones.

    Raises:
        BadResults: A file is not what its name says.
    """
    paths = {name: folder / f"{name}.json" for name in NAMES}
    found = {name: _read(name, path) for name, path in paths.items() if path.is_file()}
    return found, [name for name in NAMES if name not in found]


def _read(name: str, path: Path) -> Result:
    """The last line counts: that is where the commands print it."""
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        report = json.loads(lines[-1]) if lines else None
    except (OSError, ValueError) as error:
        raise BadResults(f"{path.name} cannot be read: {error}.") from None
    kind = name.partition("-")[0]
    missing = [key for key in NEEDED.get(kind, NEEDED[""]) if key not in (report or {})]
    if not isinstance(report, dict) or missing:
        raise BadResults(
            f"The last line of {path.name} is not what the command prints"
            f"{f': it has no {missing[0]}' if missing else ''}."
        )
    said = report.get("dataset", name)
    if said != name.removeprefix("peers-"):
        raise BadResults(f"{path.name} holds the figures of {said}.")
    return Result(name, report, datetime.fromtimestamp(path.stat().st_mtime, UTC))


def learnt_from() -> Report:
    """Where the shipped weights come from, as `train_recall` wrote it down."""
    learnt = json.loads((LEARNT_FOLDER / f"{MINILM}.json").read_text(encoding="utf-8"))
    said: Report = learnt.get("learnt_from", {})
    return said


def _rows(head: Sequence[str], rows: Iterator[Sequence[str]], *, words: int = 1) -> str:
    """
    Args:
        words: The number of left-aligned text columns; the others are numbers.
    """
    rule = ["---" if place < words else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _value(figure: Mapping[str, Any]) -> str:
    low, high = figure["ci"]
    return f"{fraction(figure['value'])} [{fraction(low)}, {fraction(high)}]"


def recall_table(report: Report, learnt: Report) -> str:
    """The shipped weights, with people left out if they were fitted on this file; then each
    type of question.
    """
    name, overall = report["dataset"], report["metrics"]["overall"]
    fitted = learnt.get("data", {}).get(name) == report["sha256"]
    left_out = learnt["figures_of_people_left_out"].get(name, {}) if fitted else {}
    shown = [metric for metric in SHOWN[name] if metric in overall]
    head = ["metric", "questions", "shipped weights [95 % interval]"]
    rows = [
        [metric, f"{overall[metric]['n']:,}", _value(overall[metric])]
        + ([fraction(left_out[metric]) if metric in left_out else "–"] if fitted else [])
        for metric in shown
    ]
    table = _rows([*head, "people left out of the fit"] if fitted else head, iter(rows))
    types = _rows(
        ("type of question, shipped weights", "questions", *shown[:2]),
        (
            (kind, f"{found[shown[0]]['n']:,}", *(_value(found[metric]) for metric in shown[:2]))
            for kind, found in report["metrics"]["by_type"].items()
            if all(metric in found for metric in shown[:2])
        ),
    )
    return f"{table}\n\n{_fitted(report, learnt)}{_degraded(report)}\n\n{types}"


def _fitted(report: Report, learnt: Report) -> str:
    """Which of these questions the weights were fitted on."""
    name = report["dataset"]
    if learnt.get("data", {}).get(name) != report["sha256"]:
        return "The shipped weights were not fitted on this file."
    counted = learnt.get("questions", {}).get(name, report["questions"])
    said = "The shipped weights were fitted on these very questions."
    if counted != report["questions"]:
        said += f" The figures of people left out are of all {counted:,}."
    return said


def _degraded(report: Report) -> str:
    notes = report.get("notes", {})
    return "".join(f" Recall said {count:,} times: {note}." for note, count in notes.items())


_TIMES = ("100 hits p50, p95 (ms)", "ten hits p50, p95 (ms)")


def peers_table(result: Result, ours: Result | None) -> str:
    """A row a system; below, whatever keeps this from being the whole truth."""
    report = result.report
    metrics = SHOWN[report["dataset"]][:2]
    table = _rows(
        ("", *metrics, *_TIMES, "messages/s in", "bytes a message", "memory (MB)"),
        (_peer(system, metrics) for system in report["systems"].values()),
    )
    questions = max(system["questions"] for system in report["systems"].values())
    said = [f"{questions:,} questions."]
    said += [f"Not measured: {why}" for why in report.get("failed", {}).values()]
    return f"{table}\n\n{' '.join([*said, *_other_ranking(report, ours)])}"


def _peer(system: Report, metrics: Sequence[str]) -> Sequence[str]:
    overall, memory = system["metrics"], system["memory_mb"]
    times = (system[key] for key in ("latency_ms", "latency_ten_ms"))
    peak = f"{memory['process_peak']:,}"
    return (
        system["title"],
        *(_value(overall["overall"][metric]) for metric in metrics),
        *(f"{milliseconds(took['p50'])}, {milliseconds(took['p95'])}" for took in times),
        f"{system['ingest']['messages_per_s']}",
        f"{system['disk_bytes_per_message']:,}",
        f"{peak} + {memory['database']}" if memory["database"] else peak,
    )


def _other_ranking(report: Report, ours: Result | None) -> Iterator[str]:
    """Whether Loci's ranking differs from its own run on the same questions."""
    loci = report["systems"].get("loci")
    if loci is None or ours is None or ours.report["sha256"] != report["sha256"]:
        return
    if ours.report["questions"] != loci["questions"]:
        yield f"Of the {ours.report['questions']:,} questions above, those of the first people."
        return
    metric = SHOWN[report["dataset"]][0]
    here, there = (m["overall"][metric]["value"] for m in (loci["metrics"], ours.report["metrics"]))
    if abs(here - there) >= 0.001:
        yield (
            f"Loci's figures here are of another state of its ranking than those above "
            f"({metric} {fraction(here)}, there {fraction(there)})."
        )


def scale_table(report: Report) -> str:
    """A row a palace, then what was measured once."""
    alone = (
        [(f"{report['alone']['drawers']:,}, alone", report["alone"])] if report.get("alone") else []
    )
    named = [*alone, *((f"{row['drawers']:,}", row) for row in report["palaces"])]
    head = ("drawers", "recall p50", "p95", "on a core", "with embedding p50", "p95")
    table = _rows(
        (*head, "NumPy p50", "bare embedder p50"),
        (
            (name, *(milliseconds(row[key]) if key in row else "–" for key in SPEEDS))
            for name, row in named
        ),
        words=0,
    )
    return f"{table}\n\nMilliseconds.\n\n{_clients(report['clients'])}\n\n{_sizes(report)}"


def _clients(clients: Report) -> str:
    return _rows(
        (
            f"{clients['clients']} at once, palaces of {clients['drawers']:,}",
            "recalls/s",
            "with embedding",
            "embeddings alone/s",
        ),
        (
            (
                f"{kind} of one server" if kind == "threads" else kind,
                *(
                    f"{clients[kind][f'{part}_per_s']:.0f}"
                    for part in ("recalls", "with_embedding", "embedding")
                ),
            )
            for kind in ("threads", "processes")
        ),
    )


def _sizes(report: Report) -> str:
    intake, size = report["intake"], report["bytes_a_drawer"]
    return (
        f"Mining takes {intake['mined_per_s']:.0f} messages a second in, the bare embedder reads "
        f"{intake['embedded_per_s']:.0f} of the same ({intake['mined_of_embedded']:.2f} of it).\n"
        f"Beside its row a drawer takes {size['index']:,} bytes: {size['passages']:,} for its "
        f"passages, {size['postings']:,} for its postings; its own text has {size['text']:,}."
    )


def ablated(report: Report) -> dict[tuple[str, str], dict[str, float]]:
    """By data set and metric, of each signal how much lower it is without; in parts of one."""
    return {
        (TITLES[dataset], short(metric)): {
            part: -found[dataset][metric] for part, found in report["without"].items()
        }
        for dataset, metric in ABLATED
        if metric in report["all"].get(dataset, {})
    }


def ablate_table(report: Report) -> str:
    """A row a signal; below, what all of them reach together."""
    columns = ablated(report)
    whole = [
        fraction(report["all"][dataset][metric])
        for dataset, metric in ABLATED
        if metric in report["all"].get(dataset, {})
    ]
    rows = [
        (name, *(points(column[name]) for column in columns.values()))
        for name in by_what_they_give(columns)
    ]
    how = (
        "weights fitted again without the signal, figures of people left out of the fit"
        if report["refit"]
        else "the other weights left as they are"
    )
    head = ("lost without", *(", ".join(names) for names in columns))
    return (
        f"{_rows(head, iter([*rows, ('*all signals reach*', *whole)]))}\n\n"
        f"Points of a hundred; recipe `{report['recipe']}`, {how}."
    )


def short(metric: str) -> str:
    """`turn_recall@10` as `turn recall@10`; `session_recall_any@5` as `session any@5`."""
    return metric.replace("recall_", "").replace("_", " ")


LEARNT = (
    *("turn_recall@10", "turn_recall@20", "session_recall@10"),
    *("session_recall_any@5", "session_recall_all@5"),
)


def learnt_table(learnt: Report) -> str:
    """A row a data set: the figures of people left out of the fit, or of a set wholly unseen."""
    return _rows(
        ("", "unseen", "questions", *LEARNT),
        (
            (
                TITLES[name],
                unseen,
                f"{learnt['questions'][name]:,}",
                *(fraction(figures[name][metric]) for metric in LEARNT),
            )
            for unseen, figures in (
                ("the whole set", learnt["figures_of_unseen"]),
                ("people left out of the fit", learnt["figures_of_people_left_out"]),
            )
            for name in TITLES
            if name in figures
        ),
        words=2,
    )


def summary(learnt: Report) -> str:
    """For the readme: what the page shows of questions that recall has not learnt from."""
    counted, unseen = learnt["questions"], learnt["figures_of_unseen"]
    left_out = learnt["figures_of_people_left_out"]["longmemeval"]
    turns = [
        f"{fraction(unseen[name]['turn_recall@10'])} of those that answer {TITLES[name]}'s "
        f"{counted[name]:,} questions"
        for name in ("locomo", "beam")
    ]
    sessions = fraction(left_out["session_recall_any@5"])
    return (
        "Without a language model, and with nothing learnt from either set, recall has among its "
        f"first ten messages\n{' and '.join(turns)}.\nIn "
        f"{sessions} of {counted['longmemeval']:,} questions made in the manner of LongMemEval "
        "(no result on it; people\nleft out of the fit), one of the first five conversations is "
        "one that answers."
    )


def log_row(result: Result, *, commit: str, hardware: str) -> str:
    """The row of the reproduction log."""
    data = result.report.get("data", {})
    if "sha256" in result.report:
        data = {"": result.report["sha256"]}
    sums = ", ".join(f"{name} {sha[:8]}".strip() for name, sha in data.items())
    cells = (f"{result.ended:%Y-%m-%d}", commit, f"`{result.command}`", sums or "made up")
    return f"| {' | '.join((*cells, hardware))} |"


def rewritten(page: str, name: str, text: str) -> str:
    """The page with the block of that name replaced.

    Raises:
        BadResults: The page has no such block.
    """
    block = re.compile(rf"(<!-- figures:{name} -->\n).*?(<!-- /figures -->)", re.DOTALL)
    if not block.search(page):
        raise BadResults(f"The page has no block <!-- figures:{name} --> … <!-- /figures -->.")
    return block.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page)


def block_of(page: str, name: str) -> str:
    """The current content of the block; empty if there is none."""
    found = re.search(rf"<!-- figures:{name} -->\n(.*?)<!-- /figures -->", page, re.DOTALL)
    return found[1] if found else ""
