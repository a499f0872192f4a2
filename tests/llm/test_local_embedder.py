from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest
from django.conf import settings
from tokenizers import Tokenizer

from llm import embedding
from llm.embedding import local, model_build
from llm.embedding.local_models import INT8_NAME, LOCAL_MODELS, MODEL_NAME, MULTILINGUAL_NAME
from llm.embedding.onnx_graph import quantized_columns
from llm.onnx_runtime import batches
from tests.cached_embeddings import not_cached
from tests.llm import reference

TEXTS = [
    "Where did I put the blue umbrella?",
    "a",
    "",
    "Naïve café owners in Zürich pay 3,50 € for milk. 你好, 世界! \u202e\u0000 🧭",
    "The tide table says high water is at six, so we leave the harbour by five. " * 6,
    "Every room of the old lighthouse had a name, and every name had a reason. " * 40,
]


@pytest.fixture(autouse=True, scope="module")
def _not_cached():
    with not_cached():
        yield


@pytest.fixture(scope="module")
def embedder():
    return local.embedder()


@pytest.fixture(scope="module")
def int8():
    return local.embedder(INT8_NAME)


@pytest.fixture(scope="module")
def multilingual():
    return local.embedder(MULTILINGUAL_NAME)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [MODEL_NAME, MULTILINGUAL_NAME])
def test_vectors_are_those_of_the_reference_forward_pass(name):
    model = LOCAL_MODELS[name]
    folder = model_build.ensure_built(settings.MODELS_DIR, name)
    tokenizer = Tokenizer.from_file(str(folder / model_build.TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    tensors = reference.load(model)
    texts = [model.passage + text for text in TEXTS]
    expected = [
        reference.embed(tensors, tokenizer.encode(text).ids, model.layers) for text in texts
    ]
    vectors, _tokens = local.embedder(name).embed(TEXTS)
    cosines = np.sum(vectors * np.array(expected), axis=1)
    assert cosines.min() > 0.9999


def test_questions_are_computed_in_integers_near_the_passages(embedder):
    asker = local.embedder(is_question=True)
    passages, _ = embedder.embed(TEXTS)
    questions, _ = asker.embed(TEXTS, is_question=True)
    cosines = np.sum(passages * questions, axis=1)
    assert cosines.min() > 0.97
    assert cosines.max() < 0.99999  # They are integers: float32 would come closer.
    for name in (INT8_NAME, MULTILINGUAL_NAME):  # They have one graph for both.
        assert model_build.model_files(LOCAL_MODELS[name]) == (model_build.MODEL_FILE,)


@pytest.mark.exhaustive
def test_questions_are_marked_where_the_model_was_trained_so(embedder, multilingual):
    [text] = ["Where do I live?"]
    for model, differs in ((embedder, False), (multilingual, True)):
        passage, _ = model.embed([text])
        question, _ = model.embed([text], is_question=True)
        assert (passage @ question.T < 0.999) == differs


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Wo wohne ich?", "Je viens de déménager à Lisbonne.", "Il pleut depuis deux jours."),
        ("¿Cómo se llama mi perro?", "我的狗叫饼干。", "利率又上升了。"),
        ("What can I not eat?", "ナッツアレルギーがあります。", "新しい自転車を買いました。"),
        ("Köpeğimin adı ne?", "Mój pies wabi się Biscuit.", "Pociąg był spóźniony o godzinę."),
    ],
)
def test_languages_meet_in_the_multilingual_model(multilingual, question, answer, other):
    [asked], _ = multilingual.embed([question], is_question=True)
    right, wrong = multilingual.embed([answer, other])[0] @ asked
    assert right > wrong + 0.02


def test_a_text_has_the_same_vector_alone_and_among_others(embedder):
    together, _tokens = embedder.embed(TEXTS)
    alone = np.concatenate([embedder.embed([text])[0] for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5


def test_integers_come_close_to_floats(embedder, int8):
    expected, _tokens = embedder.embed(TEXTS)
    vectors, _tokens = int8.embed(TEXTS)
    cosines = np.sum(vectors * expected, axis=1)
    assert cosines.min() > 0.97
    assert cosines.max() < 0.99999  # They are integers: float32 would come closer.
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_integers_do_not_depend_on_the_texts_beside(int8):
    """With one scale for all tokens of a batch this is 0.97."""
    together, _tokens = int8.embed(TEXTS)
    alone = np.concatenate([int8.embed([text])[0] for text in TEXTS])
    assert np.sum(together * alone, axis=1).min() > 0.9999


def test_both_models_serve_side_by_side(embedder, int8):
    assert local.embedder() is embedder
    assert local.embedder(INT8_NAME) is int8
    assert int8 is not embedder


def test_each_column_has_a_scale_of_its_own():
    matrix = np.array([[1.0, 0.001, 0.0], [-0.5, -0.002, 0.0]], dtype=np.float32)
    columns, scales = quantized_columns(matrix)
    assert columns.tolist() == [[127, 64, 0], [-64, -127, 0]]
    assert np.abs(columns * scales - matrix).max() <= scales.max() / 2


def test_vectors_are_unit_float32_in_the_order_of_the_texts(embedder):
    texts = [f"{word} " * repeat for repeat in (90, 1, 30) for word in ("salt", "harbour", "moth")]
    vectors, tokens = embedder.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (9, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    single, _ = embedder.embed(texts[4:5])
    assert int(np.argmax(vectors @ single[0])) == 4
    assert tokens == sum(len(text.split()) + 2 for text in texts)


def test_no_texts_make_no_vectors(embedder):
    vectors, tokens = embedder.embed([])
    assert vectors.shape == (0, 384)
    assert tokens == 0


def test_like_texts_are_nearer_than_unlike_ones(embedder):
    vectors, _ = embedder.embed(
        ["My dog is called Bruno.", "What is the name of my pet?", "Interest rates rose again."]
    )
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_what_comes_after_256_tokens_is_not_read(embedder):
    start = "word " * 254
    vectors, tokens = embedder.embed([start, start + "elephant " * 50])
    assert tokens == 2 * 256
    assert np.allclose(vectors[0], vectors[1], atol=1e-6)


def test_batches_hold_every_place_once_and_keep_to_the_budget():
    lengths = [5, 256, 100, 256, 3, 7, 200] * 20
    made = list(batches(lengths, local.BATCH_TOKENS))
    assert sorted(place for batch in made for place in batch) == list(range(len(lengths)))
    assert all(
        len(batch) * max(lengths[place] for place in batch) <= local.BATCH_TOKENS for batch in made
    )


def test_threads_may_share_it(embedder):
    expected, _ = embedder.embed(TEXTS)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(local.embedder().embed(TEXTS)[0]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.allclose(vectors, expected, atol=1e-6) for vectors in found)


def _embed_in_child(connection):
    connection.send(local.embedder().embed(["after the fork"])[0])


def test_a_forked_process_makes_its_own(embedder):
    expected, _ = embedder.embed(["after the fork"])
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_embed_in_child, args=(theirs,))
    child.start()
    assert ours.poll(60)
    assert np.allclose(ours.recv(), expected, atol=1e-6)
    child.join(20)
    assert child.exitcode == 0


def test_the_deployments_model_is_loaded_ahead_if_it_is_local_and_built(
    monkeypatch, settings, tmp_path
):
    monkeypatch.setattr(local, "_embedders", {})
    built, settings.MODELS_DIR = settings.MODELS_DIR, tmp_path
    embedding.load()
    settings.MODELS_DIR, settings.EMBEDDING_PROVIDER = built, "https://models.example/v1"
    embedding.load()
    assert local._embedders == {}
    settings.EMBEDDING_PROVIDER = "local"
    embedding.load()
    # Whoever is asked first waits for the questions' alone.
    assert local._embedders.keys() == {(settings.EMBEDDING_MODEL, model_build.QUESTIONS_FILE)}
