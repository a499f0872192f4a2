"""A sample of each format: a file with one conversation, made of messages as (id, text).

A format that is missing here fails the tests.
"""

from __future__ import annotations

from itertools import pairwise

from tests.transfer.importers.agent_exports import (
    aider,
    aider_prompt,
    claude_code,
    codex_message,
    codex_meta,
    copilot,
    copilot_request,
    cursor,
    gemini_cli,
    gemini_cli_message,
)
from tests.transfer.importers.chat_exports import (
    deepseek,
    discord,
    discord_message,
    grok,
    grok_export,
    grok_response,
    librechat,
    librechat_message,
    open_webui,
    open_webui_message,
    sharegpt,
    silly_tavern,
    silly_tavern_head,
    telegram,
    telegram_message,
)
from tests.transfer.importers.exports import (
    chatgpt,
    claude,
    claude_message,
    gemini,
    loci,
    plain,
    root,
    said,
    slack,
    slack_message,
    write_json,
    write_lines,
    write_zip,
)


def loci_told(path, told):
    drawers = [
        {"room": 1, "conversation": "c", "message": key, "role": "user", "text": text}
        for key, text in told
    ]
    return write_zip(path, loci([{"conversation": "c"}], drawers))


def chatgpt_told(path, told):
    nodes = [root()]
    for place, (key, text) in enumerate(told):
        nodes.append(said(f"{key}-{place}", text, parent=nodes[-1]["id"]))
    return write_json(path, [chatgpt(*nodes, current=nodes[-1]["id"])])


def plain_told(path, told):
    talk = plain(*[text for _, text in told])
    for message, (key, _) in zip(talk["messages"], told, strict=True):
        message["id"] = key
    return write_lines(path, [talk])


def slack_told(path, told):
    messages = [slack_message(text, ts=key) for key, text in told]
    return write_zip(path, slack({"general/2024-06-01": messages}))


def open_webui_told(path, told):
    messages = [open_webui_message(f"{key}-{n}", text) for n, (key, text) in enumerate(told)]
    return write_json(path, [open_webui(*messages)])


def librechat_told(path, told):
    messages = [librechat_message(f"{key}-{n}", text) for n, (key, text) in enumerate(told)]
    for before, message in pairwise(messages):
        message["parentMessageId"] = before["messageId"]
    return write_json(path, librechat(*messages))


def whatsapp_told(path, told):
    path.write_text("".join(f"[01.06.24, 10:00:00] Ana: {text}\n" for _, text in told))
    return path


def mail_told(path, told):
    mails = [
        f"From ana@example.org Sat Jun  1 10:00:00 2024\nFrom: Ana <ana@example.org>\n"
        f"Message-ID: <{key}-{place}@example.org>\nReferences: <first@example.org>\n"
        f"Content-Type: text/plain; charset=utf-8\n\n{text}\n\n"
        for place, (key, text) in enumerate(told)
    ]
    path.write_text("".join(mails))
    return path


def deepseek_told(path, told):
    keys = [f"{key}-{place}" for place, (key, _) in enumerate(told)]
    texts = [text for _, text in told]
    return write_json(path, [deepseek(*zip(keys, texts, strict=True))])


def claude_memories_told(path, told):
    memories = {f"{key}-{place}": text for place, (key, text) in enumerate(told)}
    return write_json(path, [{"project_memories": memories, "account_uuid": "a"}])


def claude_projects_told(path, told):
    documents = [
        {"uuid": f"{key}-{place}", "filename": "pier.md", "content": text}
        for place, (key, text) in enumerate(told)
    ]
    return write_json(path, [{"uuid": "p", "name": "Q", "prompt_template": "", "docs": documents}])


def grok_told(path, told):
    responses = [grok_response(f"{key}-{place}", text) for place, (key, text) in enumerate(told)]
    return write_json(path, grok_export(grok(*responses)))


def aider_told(path, told):
    """Prompts and answers in turn."""
    texts = [text for _, text in told]
    pieces = [f"\n{t}\n\n" if n % 2 else aider_prompt(t) for n, t in enumerate(texts)]
    path.write_text(aider(*pieces))
    return path


def cursor_told(path, told):
    path.write_text(cursor(*(("User", text) for _, text in told)))
    return path


def copilot_told(path, told):
    requests = [copilot_request(key, text) for key, text in told]
    return write_json(path, copilot(*requests))


SAMPLES = {
    "aider": aider_told,
    "claude-projects": claude_projects_told,
    "copilot": copilot_told,
    "cursor": cursor_told,
    "discord": lambda path, told: write_json(
        path, discord(*(discord_message(text, key=key) for key, text in told))
    ),
    "grok": grok_told,
    "sharegpt": lambda path, told: write_json(
        path, [sharegpt(*(("human", text) for _, text in told))]
    ),
    "sillytavern": lambda path, told: write_lines(
        path, [silly_tavern_head(), *(silly_tavern(text) for _, text in told)]
    ),
    "deepseek": deepseek_told,
    "mem0": lambda path, told: write_json(
        path, {"results": [{"id": key, "memory": text, "user_id": "ana"} for key, text in told]}
    ),
    "claude-memories": claude_memories_told,
    "mail": mail_told,
    "whatsapp": whatsapp_told,
    "telegram": lambda path, told: write_json(
        path, telegram(*(telegram_message(text, key=key) for key, text in told))
    ),
    "text": lambda path, told: write_zip(
        path, {f"{place}.txt": text for place, (_, text) in enumerate(told)}
    ),
    "open-webui": open_webui_told,
    "librechat": librechat_told,
    "openai": lambda path, told: write_json(
        path, {"messages": [{"role": "user", "id": key, "content": text} for key, text in told]}
    ),
    "chatgpt": chatgpt_told,
    "claude": lambda path, told: write_json(path, [claude(*(claude_message(*m) for m in told))]),
    "gemini": lambda path, told: write_json(
        path, [gemini("Prompted Q", text, at=key) for key, text in told]
    ),
    "slack": slack_told,
    "markdown": lambda path, told: write_zip(
        path, {f"{place}.md": text for place, (_, text) in enumerate(told)}
    ),
    "loci": loci_told,
    "claude-code": lambda path, told: write_lines(
        path, [claude_code("user", text, uuid=key) for key, text in told]
    ),
    "gemini-cli": lambda path, told: write_lines(
        path, [gemini_cli(*(gemini_cli_message("user", text, key=key) for key, text in told))]
    ),
    "codex": lambda path, told: write_lines(
        path, [codex_meta(), *(codex_message("user", text) for _, text in told)]
    ),
    "plain": plain_told,
}
