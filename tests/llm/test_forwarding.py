"""Requests passed on: through the guard as well, and hung up on from another thread."""

from __future__ import annotations

import json
import threading

import pytest

from llm.errors import ModelRefused, ModelUnavailable
from llm.providers import Endpoint
from llm.request_forwarding import ForwardedResponse, forward_request
from tests.llm.conftest import MESSAGES
from tests.llm.test_guarded_client import Names, guarded, port_of
from tests.model_server import CHAT, Text

BODY = json.dumps({"model": "m", "messages": MESSAGES, "stream": True}).encode()


def endpoint_at(base_url):
    return Endpoint(base_url, base_url, "sk-key", "m", of_a_user=True)


def test_who_waits_for_the_next_piece_is_let_go(model_server):
    model_server.answer(Text("One. Two.", pause_s=60))
    names = Names(["127.0.0.1"])
    with guarded(names, timeout_s=60) as http:
        base_url = f"http://model.example.org:{port_of(model_server)}/v1"
        request = http.build_request("POST", f"{base_url}/chat/completions", content=BODY)
        answer = ForwardedResponse(http.send(request, stream=True), endpoint_at(base_url))
        pieces = answer.pieces()
        assert b"One." in next(pieces)
        threading.Timer(0.1, answer.abort).start()
        with pytest.raises(ModelUnavailable):
            next(pieces)
        answer.close()
        answer.abort()  # Now it is nobody's business any more.


def test_an_answer_that_is_over_is_not_hung_up_on(model_server):
    """Its connection carries the next one."""
    endpoint = Endpoint("x", model_server.base_url, "", "m")
    first = forward_request(endpoint, "POST", "/chat/completions", BODY)
    assert b"[DONE]" in first.whole()
    first.close()
    second = forward_request(endpoint, "POST", "/chat/completions", BODY)
    first.abort()
    assert b"[DONE]" in second.whole()
    second.close()
    assert len(model_server.connections) == 1


def test_a_name_that_leads_into_this_network_is_refused(model_server, settings):
    settings.PRIVATE_PROVIDERS = False
    endpoint = endpoint_at(model_server.base_url.replace("127.0.0.1", "localhost"))
    with pytest.raises(ModelRefused, match="in this server"):
        forward_request(endpoint, "POST", "/chat/completions", BODY)
    assert model_server.requests_to(CHAT) == []


def test_nobody_is_led_elsewhere(model_server):
    class Elsewhere:
        def send(self, handler, request):
            handler.send_response(307)
            handler.send_header("Location", "http://127.0.0.1:1/")
            handler.send_header("Content-Length", "0")
            handler.end_headers()

    model_server.answer(Elsewhere())
    with pytest.raises(ModelRefused, match="redirects to another address"):
        forward_request(
            Endpoint("x", model_server.base_url, "", "m"), "POST", "/chat/completions", BODY
        )
