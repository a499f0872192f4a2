from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from llm import onnx_runtime
from llm.embedding import local, model_build
from llm.embedding.local import LocalEmbedder
from llm.embedding.local_models import INT8_NAME, LOCAL_MODELS, MODEL_NAME
from llm.errors import EmbedderMisconfigured


def run_command():
    output = StringIO()
    call_command("build_embedder", stdout=output)
    return output.getvalue()


def test_it_builds_says_so_and_then_is_quiet(settings, tmp_path):
    settings.MODELS_DIR = tmp_path / "models"
    assert "checksum verified" in run_command()
    folder = settings.MODELS_DIR / MODEL_NAME
    assert sorted(path.name for path in folder.iterdir()) == [
        "built.json",
        "model.onnx",
        "questions.onnx",
        "tokenizer.json",
    ]
    vectors, _tokens = LocalEmbedder(folder, LOCAL_MODELS[MODEL_NAME]).embed(["It works."])
    assert np.isclose(np.linalg.norm(vectors), 1)
    before = (folder / "model.onnx").stat().st_mtime_ns
    assert run_command() == ""
    assert (folder / "model.onnx").stat().st_mtime_ns == before


def test_it_builds_the_local_model_that_is_set(settings, tmp_path):
    settings.MODELS_DIR = tmp_path
    settings.EMBEDDING_MODEL = INT8_NAME
    assert f"Building the embedding model {INT8_NAME}" in run_command()
    assert model_build.is_built(tmp_path, INT8_NAME)
    assert not model_build.is_built(tmp_path)
    assert run_command() == ""


def test_it_builds_the_usual_one_where_another_computer_embeds(settings, tmp_path):
    settings.MODELS_DIR = tmp_path
    settings.EMBEDDING_PROVIDER, settings.EMBEDDING_MODEL = "ollama", INT8_NAME
    run_command()
    assert model_build.is_built(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.onnx", b"\xff" * 4096),
        ("questions.onnx", b"\xff" * 4096),
        ("tokenizer.json", b"\xff" * 4096),
        ("tokenizer.json", b"{}"),
    ],
)
def test_files_that_cannot_be_loaded_are_built_again(
    settings, tmp_path, monkeypatch, name, content
):
    settings.MODELS_DIR = tmp_path
    monkeypatch.setattr(local, "_embedders", {})
    damaged = model_build.ensure_built(tmp_path) / name
    # Of the same size, which is all that the stamp knows.
    damaged.write_bytes(content.ljust(damaged.stat().st_size))
    assert model_build.is_built(tmp_path)
    with pytest.raises(SystemExit):
        call_command("doctor", "--json", stdout=(said := StringIO()))
    assert "are damaged" in json.loads(said.getvalue())["embedding model"]["is"]
    for is_question in (False, True):
        found = local.embedder(is_question=is_question)
        assert found.embed(["It works."])[0].shape == (1, 384)
    assert LocalEmbedder(tmp_path / MODEL_NAME, LOCAL_MODELS[MODEL_NAME])


def test_it_needs_no_database(settings, tmp_path):
    # Without the `db` fixture any query would be an error.
    settings.MODELS_DIR = tmp_path
    assert "Built" in run_command()


@pytest.mark.exhaustive
@pytest.mark.parametrize("damage", ["older builder", "other weights", "torn model", "no stamp"])
def test_what_is_out_of_date_or_damaged_is_built_again(tmp_path, damage):
    folder = model_build.ensure_built(tmp_path)
    stamp = json.loads((folder / "built.json").read_text())
    if damage == "older builder":
        (folder / "built.json").write_text(json.dumps(stamp | {"builder": 0}))
    elif damage == "other weights":
        (folder / "built.json").write_text(json.dumps(stamp | {"weights_sha256": "00"}))
    elif damage == "torn model":
        (folder / "model.onnx").write_bytes(b"torn")
    else:
        (folder / "built.json").unlink()
    assert not model_build.is_built(tmp_path)
    model_build.ensure_built(tmp_path)
    assert model_build.is_built(tmp_path)
    assert json.loads((folder / "built.json").read_text()) == stamp


@pytest.mark.exhaustive
def test_two_processes_may_build_at_once(tmp_path):
    environment = os.environ | {"LOCI_MODELS_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "build_embedder"]
    processes = [
        subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert model_build.is_built(tmp_path)
    folder = tmp_path / MODEL_NAME
    assert len(list(folder.iterdir())) == 4  # Nothing is left lying about.


def test_other_weights_are_refused(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    with pytest.raises(EmbedderMisconfigured, match=r"should have 53aa51172d14.*Reinstall"):
        model_build.checked_weights(file, LOCAL_MODELS[MODEL_NAME])


def test_a_folder_that_cannot_be_made_is_reported(settings, tmp_path):
    in_the_way = tmp_path / "models"
    in_the_way.write_text("a file")
    settings.MODELS_DIR = in_the_way
    with pytest.raises(CommandError, match=r"cannot be written to .* set LOCI_MODELS_DIR"):
        call_command("build_embedder", stdout=StringIO())


def test_the_models_files_can_be_read_by_the_owner_and_the_folder_is_theirs(tmp_path):
    folder = model_build.ensure_built(tmp_path)
    mode = (folder / "model.onnx").stat().st_mode
    assert stat.S_IMODE(mode) & 0o600 == 0o600


@pytest.mark.parametrize(
    ("text", "quota"),
    [("200000 100000\n", 2), ("50000 100000\n", 1), ("max 100000\n", None), ("", None)],
)
def test_a_containers_quota_is_read(tmp_path, text, quota):
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert onnx_runtime._quota(file) == quota
    assert onnx_runtime._quota(tmp_path / "missing") is None


def test_there_is_at_least_one_core():
    assert onnx_runtime.available_cores() >= 1
