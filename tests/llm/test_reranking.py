"""A reranker of the server's own: what it rates, and what is said where it cannot."""

from __future__ import annotations

import multiprocessing
import threading
import time
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from onnx import TensorProto

from llm import checks, cross_encoder, reranking
from llm.cross_encoder import MAX_TOKENS, CrossEncoder
from llm.errors import RerankerMisconfigured, RerankerUnavailable
from llm.models import Usage
from tests.llm import rerankers

QUESTION = "Which wire broke?"
# They share with the question two words, none, one, and two of which one is there twice.
PASSAGES = ["The wire broke.", "Bread takes a day.", "Some wire.", "Which wire? The wire."]
SHARED = [2.0, 0.0, 1.0, 3.0]


@pytest.fixture
def folder(tmp_path):
    return rerankers.make_folder(tmp_path / "overlap", rerankers.overlap())


def rate(folder, passages=PASSAGES, timeout_s=20):
    return CrossEncoder(folder).rate(QUESTION, passages, timeout_s=timeout_s).scores


def test_each_passage_is_rated_in_its_place(folder):
    assert rate(folder) == SHARED


@pytest.mark.parametrize(
    "kind",
    [
        {"columns": 2},
        {"type_": TensorProto.INT32},
        {"output": "scores"},
        {"columns": 2, "type_": TensorProto.INT32, "output": "probabilities"},
    ],
)
def test_models_differ_and_are_read_alike(tmp_path, kind):
    folder = rerankers.make_folder(tmp_path, rerankers.overlap(**kind))
    assert rate(folder) == SHARED


def test_a_model_without_token_types_gets_none(tmp_path):
    folder = rerankers.make_folder(tmp_path, rerankers.length())
    short, long = rate(folder, ["Yes.", "Yes, yes, yes."])
    assert long == short + 4


def test_the_model_may_lie_in_a_folder_of_its_own_as_hubs_have_it(folder):
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert rate(folder) == SHARED


def test_at_most_512_tokens_are_read_and_the_question_is_among_them(folder):
    encoder = CrossEncoder(folder)
    rated = encoder.rate(QUESTION, ["bread " * 3000 + "wire", "wire " * 3000], timeout_s=20)
    assert rated.tokens == 2 * MAX_TOKENS
    # Three marks, and four tokens of the question, of which one is `wire`.
    assert rated.scores == [0, MAX_TOKENS - 3 - 4]


def test_a_question_longer_than_all_leaves_room_for_the_passage(folder):
    encoder = CrossEncoder(folder)
    assert encoder.rate("wire " * 3000, ["wire"], timeout_s=20).scores == [MAX_TOKENS - 3 - 1]


def test_strange_texts_are_rated(folder):
    passages = ["", " ", "\x00", "\ud800 wire", "線が過熱した 🧭", "wire \u202e" * 5]
    assert rate(folder, passages) == [0, 0, 0, 1, 0, 5]


def test_nothing_to_rate_is_nothing(folder):
    assert rate(folder, []) == []


def test_what_is_late_is_broken_off(tmp_path):
    folder = rerankers.make_folder(tmp_path, rerankers.slow())
    encoder = CrossEncoder(folder)
    started = time.monotonic()
    with pytest.raises(RerankerUnavailable, match=r"was not done in time\.$"):
        encoder.rate(QUESTION, PASSAGES, timeout_s=0.2)
    assert time.monotonic() - started < 3


def test_one_that_was_late_serves_again(folder):
    encoder = CrossEncoder(folder)
    with pytest.raises(RerankerUnavailable):
        encoder.rate(QUESTION, ["wire " * 600] * 200, timeout_s=0.01)
    assert encoder.rate(QUESTION, PASSAGES, timeout_s=20).scores == SHARED


WRONG = {
    "no folder": (lambda folder: None, "There is no folder"),
    "an empty folder": (lambda folder: folder.mkdir(), r"has no tokenizer\.json"),
    "no model": (
        lambda folder: (rerankers.make_folder(folder, rerankers.overlap()) / "model.onnx").unlink(),
        r"has no model\.onnx",
    ),
    "garbage for a model": (
        lambda folder: _overwrite(folder, "model.onnx", b"\x00 not a model" * 99),
        r"has a model\.onnx that cannot be run",
    ),
    "half a model": (
        lambda folder: _overwrite(
            folder, "model.onnx", rerankers.overlap().SerializeToString()[:600]
        ),
        r"has a model\.onnx that cannot be run",
    ),
    "an empty model": (
        lambda folder: _overwrite(folder, "model.onnx", b""),
        r"has a model\.onnx that cannot be run",
    ),
    "garbage for a tokenizer": (
        lambda folder: _overwrite(folder, "tokenizer.json", b"\xff\xfe\x00garbage"),
        r"has a tokenizer\.json that cannot be read",
    ),
    "a tokenizer of nothing": (
        lambda folder: _overwrite(folder, "tokenizer.json", b"{}"),
        r"has a tokenizer\.json that describes no tokenizer",
    ),
    "an embedder": (
        lambda folder: rerankers.make_folder(folder, rerankers.embedder()),
        r"answers 2 pairs with numbers of shape \(2, 512\)",
    ),
    "a model of pictures": (
        lambda folder: rerankers.make_folder(folder, rerankers.of_pictures()),
        r"takes the inputs pixel_values, where a cross-encoder takes input_ids",
    ),
    "a model that reads less": (
        lambda folder: rerankers.make_folder(folder, rerankers.short_sighted()),
        r"broke off at a first try",
    ),
    "a model that gives no numbers": (
        lambda folder: rerankers.make_folder(folder, rerankers.without_numbers()),
        r"gave a score that is no number",
    ),
}


def _overwrite(folder, name, content):
    (rerankers.make_folder(folder, rerankers.overlap()) / name).write_bytes(content)


@pytest.mark.parametrize(("make", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_work_stops_the_start_with_a_sentence(settings, tmp_path, make, said):
    folder = tmp_path / "reranker"
    make(folder)
    settings.RERANKER_PATH = str(folder)
    [error] = checks.check_reranker()
    assert error.is_serious()
    assert error.id == "llm.E003"
    with pytest.raises(RerankerMisconfigured, match=said) as caught:
        reranking.check(folder)
    assert error.msg == str(caught.value)
    assert "LOCI_RERANKER_PATH" in error.msg
    assert "\n" not in error.msg
    with pytest.raises(SystemCheckError, match="LOCI_RERANKER_PATH"):
        call_command("check", stdout=StringIO())


def test_one_that_works_passes(settings, folder):
    settings.RERANKER_PATH = str(folder)
    assert checks.check_reranker() == []


def test_none_is_set_by_itself():
    assert reranking.deployment_reranker() is None
    assert checks.check_reranker() == []


def test_a_call_is_metered_and_free(folder, alice):
    scores = reranking.rate(QUESTION, PASSAGES, folder, timeout_s=20, owner_id=alice.pk)
    assert scores == SHARED
    usage = Usage.objects.get()
    assert (usage.purpose, usage.provider, usage.model) == ("memory_rerank", "local", "overlap")
    assert (usage.owner, usage.outcome, usage.cost_usd) == (alice, "ok", 0)
    assert usage.tokens_in == 4 * (3 + 4) + 4 + 5 + 3 + 6


def test_a_call_that_fails_is_metered_as_that(tmp_path, alice):
    folder = rerankers.make_folder(tmp_path, rerankers.without_numbers())
    with pytest.raises(RerankerUnavailable):
        reranking.rate(QUESTION, PASSAGES, folder, timeout_s=20, owner_id=alice.pk)
    assert Usage.objects.get().outcome == "reranker_unavailable"
    with pytest.raises(RerankerMisconfigured):
        reranking.rate(QUESTION, PASSAGES, tmp_path / "gone", timeout_s=20, owner_id=alice.pk)
    assert Usage.objects.filter(outcome="reranker_misconfigured").count() == 1


def test_it_is_loaded_once_and_shared_by_threads(folder):
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                (
                    cross_encoder.loaded(folder),
                    cross_encoder.loaded(folder).rate(QUESTION, PASSAGES, timeout_s=20).scores,
                )
            )
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(encoder) for encoder, _scores in found} == {id(cross_encoder.loaded(folder))}
    assert [scores for _encoder, scores in found] == [SHARED] * 4


def _rate_in_child(connection, folder):
    rated = cross_encoder.loaded(folder).rate(QUESTION, PASSAGES, timeout_s=20)
    connection.send(rated.scores)


def test_a_forked_process_makes_its_own(folder):
    cross_encoder.loaded(folder).rate(QUESTION, PASSAGES, timeout_s=20)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_rate_in_child, args=(theirs, folder))
    child.start()
    assert ours.poll(60)
    assert ours.recv() == SHARED
    child.join(20)
    assert child.exitcode == 0
