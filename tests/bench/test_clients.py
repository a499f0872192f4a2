from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, call_command

from bench.client_trials import CLIENTS, MEM0_VERSIONS, Client, WrongAnswer, check
from bench.stub_servers import UNKNOWN, message_for
from palace.models import Palace
from tests.config.conftest import PROJECT


def test_the_model_knows_only_what_it_is_sent():
    question = {"role": "user", "content": "Where do I live?"}
    assert message_for({"messages": [question]})["content"] == UNKNOWN
    known = {"role": "system", "content": "User lives in Lisbon"}
    assert "Lisbon" in message_for({"messages": [known, question]})["content"]
    with pytest.raises(WrongAnswer):
        check(UNKNOWN)


@pytest.mark.exhaustive
def test_every_installed_client_works(transactional_db, capsys, tmp_path):
    page = tmp_path / "clients.md"
    call_command("client_table", write=True, page=page)
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \| (.*) \|$", page.read_text(), re.MULTILINE)
    results = {row[3] for row in rows[1:]}
    assert "works" in results
    assert results <= {"works", "not installed here"}
    assert not Palace.objects.exists()


@pytest.mark.exhaustive
def test_what_fails_is_named(transactional_db, capsys, monkeypatch):
    def broken(loci):
        raise WrongAnswer("it answered | nothing")

    clients = (Client("a client", "openai", {"`broken`": broken}),)
    monkeypatch.setattr("bench.management.commands.client_table.CLIENTS", clients)
    with pytest.raises(CommandError, match="1 of 1 calls failed"):
        call_command("client_table", only="openai")
    assert "| `broken` | fails: WrongAnswer: it answered \\| nothing |" in capsys.readouterr().out


def test_an_unknown_client_is_refused():
    with pytest.raises(CommandError, match="openai, langchain-openai"):
        call_command("client_table", only="telnet")


def test_the_page_has_every_client():
    page = (PROJECT / "docs" / "clients.md").read_text()
    assert [client.name for client in CLIENTS if f"| {client.name} |" not in page] == []
    mem0 = re.findall(r"^\| mem0's `MemoryClient` \| (\S+) \| .* \| works \|$", page, re.MULTILINE)
    assert set(mem0) == set(MEM0_VERSIONS)
