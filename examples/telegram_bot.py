"""A Telegram bot that remembers each person who writes to it, and nobody else.

Needs: pip install openai httpx; a running Loci, LOCI_API_KEY, and TELEGRAM_TOKEN from @BotFather.
"""

import os
from collections import defaultdict, deque

import httpx
from openai import OpenAI

WAIT_S = 50
# Telegram's own limit for one message.
MOST_CHARS = 4096

telegram = httpx.Client(
    base_url=os.environ.get("TELEGRAM_API", "https://api.telegram.org")
    + f"/bot{os.environ['TELEGRAM_TOKEN']}/",
    timeout=WAIT_S + 10,
)
loci = OpenAI(
    base_url=os.environ.get("LOCI_URL", "http://localhost:8000") + "/v1",
    api_key=os.environ["LOCI_API_KEY"],
)


# The latest messages of each chat. What was said before them comes from memory.
latest = defaultdict(lambda: deque(maxlen=20))


def call(method, **fields):
    answer = telegram.post(method, json=fields)
    answer.raise_for_status()
    return answer.json()["result"]


def reply_to(message):
    said = latest[message["chat"]["id"]]
    said.append({"role": "user", "content": message["text"]})
    reply = loci.chat.completions.create(
        model="loci",
        user=f"telegram-{message['from']['id']}",
        messages=list(said),
        extra_headers={"X-Loci-Conversation": f"telegram-{message['chat']['id']}"},
    )
    text = reply.choices[0].message.content
    said.append({"role": "assistant", "content": text})
    return text


def answer_new_messages(offset):
    """Answer what came since `offset`; returns the offset to go on from."""
    for update in call("getUpdates", offset=offset, timeout=WAIT_S, allowed_updates=["message"]):
        message = update.get("message", {})
        # In a group everybody would read what one person's palace says.
        if "text" in message and message["chat"]["type"] == "private":
            text = reply_to(message)[:MOST_CHARS]
            call("sendMessage", chat_id=message["chat"]["id"], text=text)
        offset = update["update_id"] + 1
    return offset


if __name__ == "__main__":
    offset = 0
    while True:
        offset = answer_new_messages(offset)
