from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from bench.runs import drop_schema, schemas
from tests.bench.conversations import LOCOMO, LONGMEMEVAL


@pytest.fixture
def run(transactional_db, capsys, tmp_path):
    """Run a benchmark's step and give what its last line says."""

    def run(command, data=None, step="full", **options):
        options.setdefault("out", tmp_path / "out")
        call_command(command, step, data=data, **options)
        return json.loads(capsys.readouterr().out.strip().splitlines()[-1])

    yield run
    for name in schemas("bench_"):
        drop_schema(name)


@pytest.fixture
def locomo(tmp_path):
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(LOCOMO))
    return path


@pytest.fixture
def longmemeval(tmp_path):
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(LONGMEMEVAL))
    return path
