"""`manage.py client_table`: which clients work with this Loci, by calling it with each."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from bench.client_trials import CLIENTS, TIMEOUT_S, Client, Loci
from bench.management.commands.bench_chat import web_server
from bench.runs import UnrestrictedCommand, own_schema
from bench.stub_servers import PLACE, played_model
from settings_app.api_keys import issue
from settings_app.models import MemorySettings, ModelUse

PAGE = settings.BASE_DIR / "docs" / "clients.md"
HEAD = f"""# Clients that were tried

Written by `manage.py client_table --write`, which starts a Loci of its own, with a model that knows
nothing but what it is sent, and has each client ask where somebody lives who said so in another
conversation. A call works if its answer has the place. Loci {settings.VERSION}.

| client | version | call | |
|---|---|---|---|
"""
FOOT = """
Claude Code, Codex, Gemini CLI, Cursor, VS Code and Claude Desktop are
[connected by files](connect.md#what-was-checked) that are checked; the programs themselves have not
been run. Open WebUI itself was [tried by hand](guides/open-webui.md); LibreChat's requests are
[replayed](proxy.md).

`make test-all` calls Loci with these libraries as well; `make clients` installs mem0's client in
each version and, where npm is installed, the AI SDK. n8n's workflow is tried without n8n:
[its requests](guides/n8n.md).
"""
Row = tuple[str, str, str, str]
WORKS, MISSING = "works", "not installed here"


class Command(UnrestrictedCommand):
    help = (
        "Call a Loci of this command's own with each client and library that is installed, and "
        "print a table of what works. Exit status 1 if a call fails."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="Write the page, too.")
        parser.add_argument("--page", type=Path, default=PAGE, help="The page.")
        parser.add_argument("--only", metavar="CLIENT", help="One client, by its package.")

    def handle(self, *, write: bool, page: Path, only: str | None, **options: Any) -> None:
        clients = [client for client in CLIENTS if only in (None, client.package)]
        if not clients:
            known = ", ".join(client.package for client in CLIENTS)
            raise CommandError(f"There is no client {only}; there are {known}.")
        if write and only:
            raise CommandError("The page has all clients: leave --only out, or --write.")
        with (
            own_schema("client_table", keep=False),
            played_model() as model,
            web_server() as (host, port),
        ):
            url = f"http://{host}:{port}"
            rows = [row for each in clients for row in _tried(each, url, model)]
        text = HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + FOOT
        self.stdout.write(text)
        if write:
            page.write_text(text)
        failed = [row for row in rows if row[3] not in (WORKS, MISSING)]
        if failed:
            raise CommandError(f"{len(failed)} of {len(rows)} calls failed.")


def _tried(client: Client, url: str, model: str) -> Iterator[Row]:
    version = client.version()
    if version is None:
        yield client.name, "", ", ".join(client.calls), MISSING
        return
    loci = _with_a_palace(client, url, model)
    for call, run in client.calls.items():
        try:
            run(loci)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its result.
            said = " ".join(str(error).split()).replace("|", "\\|")[:200]
            yield client.name, version, call, f"fails: {type(error).__name__}: {said}"
        else:
            yield client.name, version, call, WORKS


def _with_a_palace(client: Client, url: str, model: str) -> Loci:
    """An account of its own for each client, whose palace knows where its owner lives."""
    owner = User.objects.create_user(f"{client.package} {client.version()}")
    uses = [ModelUse.REPLIES.value]
    MemorySettings.objects.create(owner=owner, provider=model, model="played", uses=uses)
    _, key = issue(owner, client.name, scopes=["read", "write", "admin"])
    said = {"role": "user", "content": f"I just moved to {PLACE}."}
    answer = httpx.post(
        f"{url}/turns",
        json={"session_id": "monday", "messages": [said]},
        headers={"Authorization": f"Bearer {key}"},
        timeout=TIMEOUT_S,
    )
    answer.raise_for_status()
    return Loci(url, key)
