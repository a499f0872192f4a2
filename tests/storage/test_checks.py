from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from palace.pipeline.mine import mine
from tests.conversations import BATTERY


def test_settings_that_agree_pass(palace):
    mine(palace, BATTERY)
    call_command("check", databases=["default"])


def test_another_embedding_model_is_refused_with_its_cure(palace, settings):
    mine(palace, BATTERY)
    settings.EMBEDDING_PROVIDER = "openai"
    settings.EMBEDDING_MODEL = "text-embedding-3-small"
    settings.EMBEDDING_DIMENSIONS = 1536
    settings.EMBEDDING_API_KEY = "key"
    with pytest.raises(SystemCheckError, match=r"manage\.py reembed"):
        call_command("check", databases=["default"])
