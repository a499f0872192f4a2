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
    cursor_bubble,
    cursor_composer,
    cursor_database,
    cursor_typed,
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
    perplexity,
    perplexity_entry,
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


def write_loci(path, messages):
    drawers = [
        {"room": 1, "conversation": "c", "message": key, "role": "user", "text": text}
        for key, text in messages
    ]
    return write_zip(path, loci([{"conversation": "c"}], drawers))


def write_chatgpt(path, messages):
    nodes = [root()]
    for place, (key, text) in enumerate(messages):
        nodes.append(said(f"{key}-{place}", text, parent=nodes[-1]["id"]))
    return write_json(path, [chatgpt(*nodes, current=nodes[-1]["id"])])


def write_plain(path, messages):
    talk = plain(*[text for _, text in messages])
    for message, (key, _) in zip(talk["messages"], messages, strict=True):
        message["id"] = key
    return write_lines(path, [talk])


def write_slack(path, messages):
    messages = [slack_message(text, ts=key) for key, text in messages]
    return write_zip(path, slack({"general/2024-06-01": messages}))


def write_open_webui(path, messages):
    messages = [open_webui_message(f"{key}-{n}", text) for n, (key, text) in enumerate(messages)]
    return write_json(path, [open_webui(*messages)])


def write_librechat(path, messages):
    messages = [librechat_message(f"{key}-{n}", text) for n, (key, text) in enumerate(messages)]
    for before, message in pairwise(messages):
        message["parentMessageId"] = before["messageId"]
    return write_json(path, librechat(*messages))


def write_whatsapp(path, messages):
    path.write_text("".join(f"[01.06.24, 10:00:00] Ana: {text}\n" for _, text in messages))
    return path


def write_mail(path, messages):
    mails = [
        f"From ana@example.org Sat Jun  1 10:00:00 2024\nFrom: Ana <ana@example.org>\n"
        f"Message-ID: <{key}-{place}@example.org>\nReferences: <first@example.org>\n"
        f"Content-Type: text/plain; charset=utf-8\n\n{text}\n\n"
        for place, (key, text) in enumerate(messages)
    ]
    path.write_text("".join(mails))
    return path


def write_deepseek(path, messages):
    keys = [f"{key}-{place}" for place, (key, _) in enumerate(messages)]
    texts = [text for _, text in messages]
    return write_json(path, [deepseek(*zip(keys, texts, strict=True))])


def write_claude_memories(path, messages):
    memories = {f"{key}-{place}": text for place, (key, text) in enumerate(messages)}
    return write_json(path, [{"project_memories": memories, "account_uuid": "a"}])


def write_claude_projects(path, messages):
    documents = [
        {"uuid": f"{key}-{place}", "filename": "pier.md", "content": text}
        for place, (key, text) in enumerate(messages)
    ]
    return write_json(path, [{"uuid": "p", "name": "Q", "prompt_template": "", "docs": documents}])


def write_grok(path, messages):
    responses = [
        grok_response(f"{key}-{place}", text) for place, (key, text) in enumerate(messages)
    ]
    return write_json(path, grok_export(grok(*responses)))


def write_aider(path, messages):
    """Prompts and answers in turn."""
    texts = [text for _, text in messages]
    pieces = [f"\n{t}\n\n" if n % 2 else aider_prompt(t) for n, t in enumerate(texts)]
    path.write_text(aider(*pieces))
    return path


def write_cursor(path, messages):
    path.write_text(cursor(*(("User", text) for _, text in messages)))
    return path


def write_cursor_database(path, messages):
    bubbles = [cursor_bubble(f"{key}-{place}", text) for place, (key, text) in enumerate(messages)]
    return cursor_database(path, cursor_composer(*bubbles))


def write_perplexity(path, messages):
    """Questions and answers in turn; the last may have no answer."""
    texts = [text for _, text in messages]
    pairs = zip(texts[::2], [*texts[1::2], ""], strict=False)
    return write_json(path, {"conversations": [perplexity(*(perplexity_entry(*p) for p in pairs))]})


def write_copilot(path, messages):
    requests = [copilot_request(key, text) for key, text in messages]
    return write_json(path, copilot(*requests))


SAMPLES = {
    "aider": write_aider,
    "claude-projects": write_claude_projects,
    "copilot": write_copilot,
    "cursor": write_cursor,
    "cursor-database": write_cursor_database,
    "cursor-transcript": lambda path, messages: write_lines(
        path, [cursor_typed(text) for _, text in messages]
    ),
    "discord": lambda path, messages: write_json(
        path, discord(*(discord_message(text, key=key) for key, text in messages))
    ),
    "grok": write_grok,
    "sharegpt": lambda path, messages: write_json(
        path, [sharegpt(*(("human", text) for _, text in messages))]
    ),
    "sillytavern": lambda path, messages: write_lines(
        path, [silly_tavern_head(), *(silly_tavern(text) for _, text in messages)]
    ),
    "deepseek": write_deepseek,
    "perplexity": write_perplexity,
    "mem0": lambda path, messages: write_json(
        path, {"results": [{"id": key, "memory": text, "user_id": "ana"} for key, text in messages]}
    ),
    "claude-memories": write_claude_memories,
    "mail": write_mail,
    "whatsapp": write_whatsapp,
    "telegram": lambda path, messages: write_json(
        path, telegram(*(telegram_message(text, key=key) for key, text in messages))
    ),
    "text": lambda path, messages: write_zip(
        path, {f"{place}.txt": text for place, (_, text) in enumerate(messages)}
    ),
    "open-webui": write_open_webui,
    "librechat": write_librechat,
    "openai": lambda path, messages: write_json(
        path, {"messages": [{"role": "user", "id": key, "content": text} for key, text in messages]}
    ),
    "chatgpt": write_chatgpt,
    "claude": lambda path, messages: write_json(
        path, [claude(*(claude_message(*m) for m in messages))]
    ),
    "gemini": lambda path, messages: write_json(
        path, [gemini("Prompted Q", text, at=key) for key, text in messages]
    ),
    "slack": write_slack,
    "markdown": lambda path, messages: write_zip(
        path, {f"{place}.md": text for place, (_, text) in enumerate(messages)}
    ),
    "loci": write_loci,
    "claude-code": lambda path, messages: write_lines(
        path, [claude_code("user", text, uuid=key) for key, text in messages]
    ),
    "gemini-cli": lambda path, messages: write_lines(
        path, [gemini_cli(*(gemini_cli_message("user", text, key=key) for key, text in messages))]
    ),
    "codex": lambda path, messages: write_lines(
        path, [codex_meta(), *(codex_message("user", text) for _, text in messages)]
    ),
    "plain": write_plain,
}
