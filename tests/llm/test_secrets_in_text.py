"""Secrets and card numbers are found and masked, and nothing else is."""

from __future__ import annotations

import base64
import json

import pytest

from llm import chat, providers, request_forwarding
from llm.embedding import EmbeddingModel, embed
from llm.secrets_in_text import find_secrets, mask, mask_within, masks_toward, secret_tags
from tests.slow_texts import times_slower


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = f"{part({'alg': 'HS256'})}.{part({'sub': 'ada'})}.c2lnbmVkLWJ5LWFkYQ"
# Put together here, so that nobody's scanner takes them for real ones.
SECRETS = {
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitLab": "glpat-" + "x1Y2" * 5,
    "Anthropic": "sk-ant-" + "api03-" + "a1B2" * 8,
    "OpenAI": "sk-proj-" + "a1B2" * 8,
    "Google": "AIza" + "a1B2c" * 7,
    "Stripe": "sk_live_" + "a1B2" * 6,
    "JWT": JWT,
    "GitHub, fine-grained": "github_pat_" + "11ABC" * 12,
    "Groq": "gsk_" + "a1B2" * 13,
    "xAI": "xai-" + "a1B2" * 20,
    "DigitalOcean": "dop_v1_" + "ab12" * 16,
    "age": "AGE-SECRET-KEY-" + "1QPZRY" * 10,
    "Loci": "loci_" + "a1B2c-" * 7 + "d",
    "an app of Loci": "loci-access-" + "a1B2c-" * 7 + "d",
    "a webhook": "whsec_" + "a1B2" * 8,
}
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEow' * 40}\n-----END RSA PRIVATE KEY-----"
CARDS = ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"]
# The same number as people and programs write it.
WRITTEN = {
    "in full-width digits": "４１１１１１１１１１１１１１１１",
    "in Arabic digits": "٤١١١ ١١١١ ١١١١ ١١١١",
    "in Persian digits": "۴۱۱۱-۱۱۱۱-۱۱۱۱-۱۱۱۱",
    "in Devanagari": "४१११११११११११११११",
    "in escapes of JSON": "\\u0664" + "\\u0661" * 15,
    "with no-break spaces": "4111\xa01111\xa01111\xa01111",
    "with narrow spaces": "4111\u202f1111\u202f1111\u202f1111",
    "with entities of HTML": "4111&nbsp;1111&nbsp;1111&nbsp;1111",
    "with en dashes": "4111–1111–1111–1111",
    "with unseen spaces": "4111\u200b1111\u200b1111\u200b1111",
    "with wide spaces": "4111  1111  1111  1111",
    "with dots": "4111.1111.1111.1111",
    "in bold": "4111 **1111** 1111 1111",
    "over two lines": "4111 1111\n1111 1111",
    "of Maestro": "6759649826438453",
}
INNOCENT = [
    "I moved to Porto last week, and the ferry leaves at nine.",
    "The commit is 74247299aa35d0a7b6f3e4d1c2b3a4958677f0e1.",
    "My phone is +351 912 345 678, my IBAN PT50 0002 0123 1234 5678 9015 4.",
    "Order 4111 1111 1111 1112 has arrived.",  # Its check digit is wrong.
    "See https://example.org/a-long-path/with/many/parts?and=a&query=string#here.",
    "b2c5a3de-0b1f-4c55-8f55-0d6f0c3a7d11",
    "1234567890123456789012345678901234567890",
    "The ratio is 0.4111111111111111, or 0,4111111111111111.",
    "Call it at 4111.1111, version 4.11.11; the years were 4111 1111 1111 1111 1111 1111.",
    "IBAN NO93 8601 1117 947, or DE89 4111 1111 1111 1111 00.",
    "می‌خواهم ۱۴۰۳ و ۱۴۰۴ را بخوانم، \\u00e9t\\u00e9 ☕️ 👩‍🚀",
    "The bearer of internationalization-of-everything waits.",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_token_is_found_and_masked_whole(name):
    text = f"The key is {SECRETS[name]}, keep it."
    assert secret_tags(text) == {"s": ["secret"]}
    assert mask(text) == "The key is [secret removed], keep it."


def test_a_password_in_an_address_is_masked_and_the_address_stays():
    masked = mask("It is at postgresql://ada:correct-horse@db.example.org/loci.")
    assert masked == "It is at postgresql://ada:[secret removed]@db.example.org/loci."


def test_of_a_private_key_nothing_is_left():
    assert mask(f"Here:\n{KEY}\nThere.") == "Here:\n[secret removed]\nThere."


@pytest.mark.parametrize("card", CARDS)
def test_a_card_number_is_known_by_its_check_digit(card):
    assert secret_tags(f"Pay with {card}.") == {"s": ["card"]}
    assert mask(f"Pay with {card}.") == "Pay with [card number removed]."


@pytest.mark.parametrize("way", WRITTEN)
def test_a_card_number_is_found_however_it_is_written(way):
    text = f"👩‍🚀 Pay with “{WRITTEN[way]}”, \\u00e9t\\u00e9."
    assert secret_tags(text) == {"s": ["card"]}
    assert mask(text) == "👩‍🚀 Pay with “[card number removed]”, \\u00e9t\\u00e9."


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Ada,4111111111111111,12/27", "Ada,[card number removed],12/27"),
        ("7,4111111111111111,123", "7,[card number removed],123"),
        ("4111 1111 1111 1111 12/27", "[card number removed] 12/27"),
        ("4111-1111-1111-1111 0327", "[card number removed] 0327"),
        ("3782 822463 10005 12-27", "[card number removed] 12-27"),
        ("2 4111 1111 1111 1111", "2 [card number removed]"),
    ],
)
def test_a_card_number_is_found_beside_other_numbers(text, masked):
    assert mask(text) == masked


@pytest.mark.parametrize("name", SECRETS.keys() - {"JWT", "Stripe"})
def test_letters_of_another_script_may_touch_a_token(name):
    assert mask(f"密钥{SECRETS[name]}。") == "密钥[secret removed]。"


def test_a_secret_is_known_by_its_name():
    secret = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
    assert mask(f"aws_secret_access_key = {secret}") == "aws_secret_access_key = [secret removed]"
    assert mask("Authorization: Bearer " + "a1b2" * 8) == "Authorization: Bearer [secret removed]"
    assert mask("redis://:correct-horse@db/0") == "redis://:[secret removed]@db/0"


@pytest.mark.parametrize("text", INNOCENT)
def test_what_is_no_secret_stays_to_the_byte(text):
    assert find_secrets(text) == []
    assert mask(text) is text


@pytest.mark.parametrize("name", SECRETS)
def test_within_json_it_is_found_at_the_beginning_of_a_line_and_in_quotation_marks(name):
    text = json.dumps({"text": f'My key:\n{SECRETS[name]}\nand "{SECRETS[name]}".'})
    masked = json.loads(mask(text))["text"]
    assert masked == 'My key:\n[secret removed]\nand "[secret removed]".'


@pytest.mark.parametrize("cut", [slice(0, 900), slice(300, None)])
def test_of_a_key_that_was_cut_no_whole_line_is_left(cut):
    line = "MIIEow" * 10
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{(line + chr(10)) * 25}-----END RSA PRIVATE KEY-----"
    assert line not in mask(key[cut])


def test_words_that_are_a_part_of_a_token_stay():
    token = "ghs_" + "a1B2" * 9
    assert mask(f"She laughs at {token}.") == "She laughs at [secret removed]."
    masked = mask("postgresql://loci:loci@db/loci is that of loci")
    assert masked == "postgresql://loci:[secret removed]@db/loci is that of loci"


def test_what_only_begins_like_a_file_is_masked():
    text = f"data: {SECRETS['GitHub']}"
    assert mask_within({"content": text}) == {"content": "data: [secret removed]"}


def test_of_several_each_is_masked_and_both_kinds_are_tagged():
    text = f"{SECRETS['AWS']} and {CARDS[0]}, then {SECRETS['GitHub']}"
    assert secret_tags(text) == {"s": ["card", "secret"]}
    assert mask(text) == "[secret removed] and [card number removed], then [secret removed]"


@pytest.mark.parametrize("before", [0, 1300, 1390, 1990, 2790, 5000])
def test_it_is_found_wherever_it_stands_in_a_long_text(before):
    text = "a " * (before // 2) + SECRETS["GitHub"] + " b" * 2000
    assert mask(text) == "a " * (before // 2) + "[secret removed]" + " b" * 2000


def test_texts_within_lists_and_dicts_are_masked_and_files_are_not():
    image = "data:image/png;base64," + SECRETS["AWS"]
    body = {"messages": [{"content": [SECRETS["AWS"], {"url": image}], "n": 1}]}
    masked = {"messages": [{"content": ["[secret removed]", {"url": image}], "n": 1}]}
    assert mask_within(body) == masked


def test_only_where_it_is_set_and_only_toward_elsewhere(settings):
    assert not masks_toward("https://api.example.org/v1")
    settings.MASK_SECRETS = True
    assert masks_toward("https://api.example.org/v1")
    assert not masks_toward("http://127.0.0.1:11434/v1")


@pytest.mark.parametrize(
    "piece",
    [
        "4",
        "4111 ",
        "\u200b\\u0034",
        *(
            pytest.param(piece, marks=pytest.mark.exhaustive)
            for piece in ("eyJ", "//", "-----BEGIN PRIVATE KEY-----", "AC", "://a:", "aws")
        ),
    ],
)
def test_it_takes_time_by_the_length_of_a_text(piece):
    times_slower(find_secrets, lambda size: piece * (size // len(piece)), 20_000)


CARD = f"Pay with {CARDS[0]}."


@pytest.fixture
def elsewhere(model_server, settings, monkeypatch):
    """The model's address, by a name that is not known to be this machine's."""
    settings.LLM_MAX_RETRIES = 0
    monkeypatch.setenv("no_proxy", "127.1")
    monkeypatch.setenv("NO_PROXY", "127.1")
    # Made again, with this environment.
    request_forwarding._client.cache_clear()
    return model_server.base_url.replace("127.0.0.1", "127.1")


@pytest.mark.django_db
@pytest.mark.parametrize("masks", [True, False])
def test_a_model_elsewhere_gets_no_secret_where_that_is_set(
    model_server, elsewhere, settings, masks
):
    settings.MASK_SECRETS = masks
    messages = [{"role": "user", "content": CARD}]
    for address in (elsewhere, model_server.base_url):
        endpoint = providers.endpoint(address, "small", "key")
        chat.complete(messages, endpoint=endpoint, purpose="chat")
        assert "".join(chat.stream(messages, endpoint=endpoint, purpose="chat"))
    far, far_streamed, near, near_streamed = (each.prompt for each in model_server.requests)
    assert far == far_streamed == ("Pay with [card number removed]." if masks else CARD)
    assert near == near_streamed == CARD


@pytest.mark.django_db
def test_an_embedder_elsewhere_gets_no_secret(model_server, elsewhere, settings):
    settings.MASK_SECRETS = True
    embed([CARD], EmbeddingModel(elsewhere, "e", 384, "key"), cached=False)
    assert model_server.requests[-1].body["input"] == ["Pay with [card number removed]."]


def test_what_a_program_sends_through_the_proxy_is_masked_too(model_server, elsewhere, settings):
    settings.MASK_SECRETS = True
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": CARD}]}).encode()
    endpoint = providers.endpoint(elsewhere, "m", "key")
    request_forwarding.forward_request(endpoint, "POST", "/chat/completions", body).close()
    assert model_server.requests[-1].prompt == "Pay with [card number removed]."
