"""Which addresses a user's own model may have."""

from __future__ import annotations

import logging
import socket

import pytest

from llm import chat, client, providers, transport
from llm.errors import ModelRefused
from llm.models import Usage
from tests.llm.conftest import KEY, MESSAGES, complete, of_a_user

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::200e", "64:ff9b::8.8.8.8"]
NOT_PUBLIC = {
    "this machine": ["127.0.0.1", "127.8.9.1", "::1"],
    "no address": [
        "0.0.0.0",  # noqa: S104 - to be refused.
        "0.1.2.3",
        "::",
    ],
    "private": ["10.0.0.1", "172.16.3.4", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1"],
    "link-local": ["169.254.1.1", "fe80::1", "fe80::1%eth0"],
    "a cloud's metadata": [
        "169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
    ],
    "a provider's network": ["100.64.0.1"],
    "many at once": ["224.0.0.1", "239.255.255.250", "ff02::1", "255.255.255.255"],
    "reserved": ["240.0.0.1", "192.0.2.1", "198.18.0.1", "2001:db8::1", "3fff::1", "fec0::1"],
    "IPv4 in disguise": [
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::10.0.0.1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
    ],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address):
    assert transport.is_public(address)


@pytest.mark.parametrize("address", [each for kind in NOT_PUBLIC.values() for each in kind])
def test_everything_else_is_not(address):
    assert not transport.is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost.",
        "LOCALHOST",
        "ollama.localhost",
        "127.0.0.1",
        "127.1",
        "0",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "10.0.0.1:8000",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "user:password@127.0.0.1",
    ],
)
def test_an_address_that_says_so_itself_is_refused_at_once(closed, host):
    with pytest.raises(ModelRefused, match="in this server's own network") as refusal:
        providers.endpoint(f"http://{host}/v1", "some-model", KEY, of_a_user=True)
    assert "password" not in str(refusal.value)


@pytest.mark.parametrize("preset", ["ollama", "vllm"])
def test_presets_on_this_machine_are_refused_to_users(closed, preset):
    with pytest.raises(ModelRefused, match="localhost is in this server's own network"):
        providers.endpoint(preset, "qwen3", of_a_user=True)


@pytest.mark.parametrize("preset", ["openai", "openrouter", "anthropic", "gemini"])
def test_presets_elsewhere_are_not(closed, preset):
    assert providers.endpoint(preset, "some-model", KEY, of_a_user=True).of_a_user


def test_the_operators_own_model_may_be_anywhere(closed, model_server, db):
    model_server.answer("Here I am.")
    endpoint = providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY)
    assert complete(endpoint).text == "Here I am."


def test_on_ones_own_machine_a_users_may_too(settings, model_server, db):
    assert settings.PRIVATE_PROVIDERS  # The default beside the embedded services.
    endpoint = providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY, of_a_user=True)
    assert complete(endpoint).text == "OK."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0"])  # noqa: S104
def test_nothing_is_sent_to_an_address_within(closed, model_server, alice, host, caplog):
    caplog.set_level(logging.INFO, logger="openai")
    endpoint = of_a_user(model_server.base_url.replace("127.0.0.1", host))
    with pytest.raises(ModelRefused, match=f"{host} is in this server's own network"):
        complete(endpoint)
    assert model_server.requests == []
    assert "Retrying" not in caplog.text
    assert Usage.objects.get().outcome == "model_refused"


def test_nor_is_a_connection_made(closed, db):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.3)
        with pytest.raises(ModelRefused):
            complete(of_a_user(f"http://127.0.0.1:{listening.getsockname()[1]}/v1"))
        with pytest.raises(TimeoutError):
            listening.accept()


def test_a_public_address_is_let_out(closed, db):
    """The tests' own fence is what stops it, one step further."""
    with pytest.raises(UserWarning, match=r"tried to use .* with host \"1\.1\.1\.1\""):
        complete(of_a_user("http://1.1.1.1/v1"))


def test_streams_are_guarded_too(closed, model_server, db):
    endpoint = of_a_user(model_server.base_url)
    with pytest.raises(ModelRefused):
        list(chat.stream(MESSAGES, endpoint=endpoint, purpose="chat"))
    assert model_server.requests == []


def test_guarded_and_unguarded_clients_are_not_mixed(closed, model_server, db):
    """The same address and key: the operator's connections must not serve the user."""
    operators = providers.endpoint(model_server.base_url, "gpt-4o-mini", KEY)
    complete(operators)
    with pytest.raises(ModelRefused):
        complete(of_a_user(model_server.base_url))
    complete(operators)
    assert len(model_server.requests) == 2


def test_closing_the_network_counts_at_once(settings, model_server, db):
    settings.PRIVATE_PROVIDERS = True
    complete(of_a_user(model_server.base_url))
    settings.PRIVATE_PROVIDERS = False
    with pytest.raises(ModelRefused):
        complete(of_a_user(model_server.base_url))


def test_a_proxy_of_the_environment_is_no_way_around(closed, model_server, db, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", model_server.base_url.removesuffix("/v1"))
    monkeypatch.setenv("ALL_PROXY", model_server.base_url.removesuffix("/v1"))
    with pytest.raises(ModelRefused):
        complete(of_a_user("http://10.1.2.3/v1"))
    assert model_server.requests == []


def test_headers_of_the_environment_do_not_travel_to_users_servers(model_server, db, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Secret: the-operators")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-operator")
    client._client.cache_clear()
    complete(of_a_user(model_server.base_url))
    (request,) = model_server.requests
    assert "the-operators" not in str(request.headers)
    assert "org-of-the-operator" not in str(request.headers)
    client._client.cache_clear()
