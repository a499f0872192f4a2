"""Uploading in the browser, and what the pages of an import say."""

from __future__ import annotations

import html
import json
import re

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from palace.models import ImportJob
from palace.transfer import import_jobs
from tests.transfer.importers.exports import chatgpt_talk, plain

HTMX = {"HX-Request": "true"}


TALKS = [
    plain("When does the ferry leave?", "At nine.", "", conversation_id=f"p{n}") for n in "abc"
]


def lines(talks):
    return "".join(json.dumps(talk) + "\n" for talk in talks).encode()


def send(client, content, name="talks.jsonl", **options):
    form = {"file": SimpleUploadedFile(name, content), "whole": "yes"}
    return client.post(reverse("imports"), form, **options)


def previewed(client, talks=TALKS):
    return ImportJob.objects.get(uuid=re.search("[0-9a-f-]{36}", send(client, lines(talks)).url)[0])


def run_to_the_end(job):
    import_jobs.start(job)
    while not import_jobs.run_slice(job):
        pass


def words(response):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.text)).split())


def figures(response):
    rows = re.findall(r'<th scope="row">(.*?)</th>\s*<td class="number">(.*?)</td>', response.text)
    return {html.unescape(name): int(number.replace(",", "")) for name, number in rows}


CHATGPT = [chatgpt_talk("Which tea?", "Oolong.")]
