"""Secrets and card numbers are found and masked, and nothing else is."""

from __future__ import annotations

import base64
import json

import pytest

from llm import chat, providers, request_forwarding
from llm.embedding import EmbeddingModel, embed
from llm.secrets_in_text import (
    OVERLAP_CHARS,
    PIECE_CHARS,
    find_secrets,
    mask,
    mask_within,
    masks_toward,
    secret_tags,
)
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
    "DeepSeek": "sk-" + "a1b2" * 8,
    "npm": "npm_" + "a1B2" * 9,
    "Slack, an app": "xapp-" + "1-A0123456789-1234567890123-" + "ab12" * 16,
    "Google, an app": "GOCSPX-" + "a1B2" * 7,
    "Google, access": "ya29." + "a0Af-" * 12,
    "Google, refresh": "1//0" + "a1B2-" * 12,
    "Shopify": "shpat_" + "ab12" * 8,
    "Databricks": "dapi" + "ab12" * 8,
    "Vault": "hvs." + "AbC12" * 18,
    "Docker": "dckr_pat_" + "a1B2c" * 5 + "xy",
    "Grafana": "glsa_" + "a1B2" * 8 + "_" + "ab12" * 2,
    "Grafana Cloud": "glc_" + "eyJv1" * 12,
    "Atlassian": "ATATT3xFf" + "a1B2_" * 36 + "=AB12CD34",
    "Linear": "lin_api_" + "a1B2" * 10,
    "Postman": "PMAK-" + "ab12" * 6 + "-" + "cd34" * 8 + "ef",
    "Discord": "https://discord.com/api/webhooks/" + "123456789012345678/" + "a1B-" * 17,
    "Hugging Face": "hf_" + "a1B2" * 9,
    "Replicate": "r8_" + "a1B2" * 9 + "c",
    "Perplexity": "pplx-" + "a1B2" * 12,
    "Notion": "ntn_" + "a1B2" * 11,
    "New Relic": "NRAK-" + "A1B2C3" * 5,
    "Figma": "figd_" + "a1B2_" * 8,
    "Supabase": "sbp_" + "ab12" * 10,
    "PlanetScale": "pscale_tkn_" + "a1B2" * 10,
    "Sentry": "sntrys_" + "eyJp1" * 16,
    "Vercel": "vercel_blob_rw_" + "a1B2" * 10,
    "Airtable": "pat" + "a1B2c3D" * 2 + "." + "ab12" * 16,
    "Doppler": "dp.pt." + "a1B2" * 11,
    "Fly": "fm2_" + "a1B2" * 20,
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
    "The years 4111,1111,1111,1111,1111; 3000,4111,1111,1111,1111; | 4111 | 1111 | 1111 | 1111 |.",
    "Order 4111-2222-3333-4445, ISBN 978-3-16-148410-0, call (415) 555-0132.",
    # Four numbers in a row, one in ten of which has the check digit of a card.
    "3000,3100,3200,3300",
    "2200,2201,2202,2203",
    "2221,2222,2223,2224",
    "It has 3000 3100 3200 3300 of them, then 2270|2271|2272|2273.",
    # Names, versions, times and the cursors that a program passes on.
    "token: gray-100-200",
    "token: color-blue-500-v2",
    "secret: color-blue-500-v2",
    "token: 2026-11-30T10:00:00Z",
    'access_token="2026-11-30T10:00:00Z" password=v1.2.3-rc4x',
    "private key: id_ed25519_2024",
    "private_key: id_ed25519_2024",
    "Pass: v1.2.3-rc4x",
    "- pass: 12of15tests",
    "master key: C#m7-F#m7-B7",
    '"token": "h264main"',
    "access_token=response2data1",
    *(
        f'{{"{name}": "a1B2c3D4e5F6"}} {name}=a1B2c3D4e5F6'
        for name in ("page_token", "sync_token", "next_token", "csrf_token", "nextPageToken")
    ),
    "PAGE_TOKEN=a1B2c3D4e5F6\ncontinuation-token: a1B2c3D4e5F6",
    'password="password123" token="test_token_1_v2" secret=xxxx-1-xxxx-2 token=your-token-1-a2',
    "password = input()",
    "api_key=os.environ['API_KEY_2'], token = settings.tokens.OPENAI_2_B3",
    'password = getpass.getpass("Password (8-20 characters): ")',
    'if password == other.password1.value2 or token != tokens[0]: password = "hunter"',
    "max_tokens=1000000, total_tokens: 123456789, bypass=1a2b3c4d5e6f, tokenizer=bert2base3large",
    "PWD=/home/ada/projects2/loci3; PASSWORD=${DB_1_PASS_2}; SECRET=<32-random-bytes-in-b64>",
    'API_KEY="your-api-key-123" password="changeme123" secret: "xxxx1xxxx2xxxx"',
    "{'password': 'required|min:8|max:20', 'token': '{{ token_1 }}', \"secret\": \"$SECRET_1_X2\"}",
    "interface User {\n  password: string;\n  secret: Uint8Array\n  token: Base64String\n}",
    "Password: at least 12 characters, 2 of them digits. The secret: i18n2go4all is the answer.",
    "Authorization: Basic authentication is what curl -u sends; Basic knowledge of vim is fine.",
    "Authorization: Basic base64EncodedUserAndId",
    "npm_config_registry=https://npm.example.org, npm_package_version, hvs.is_it_really_a_token",
    "sk-learn-contrib-hierarchical-clustering and sk-SK, dapi and lin_api_client, ya29. Here we go",
    "https://discord.com/api/webhooks/ is where they are made: /api/webhooks/{id}/{token}.",
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


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        ("password=", "hunter2hunter2", ""),
        ("export DB_PASS=", "Tr0ub4dor-3x", " && make"),
        ('API_KEY="', "a1B2c3D4" * 4, '"'),
        ("os.environ['API_KEY'] = '", "a1B2c3D4" * 4, "'"),
        ('{"client_secret": "', "Zx9~kQ2w-Lm4", '"}'),
        ("https://example.org/?user=ada&access_token=", "a1b2c3d4e5f6", "&page=2"),
        ("db:\n  user: ada\n  password: ", "c0rrect-h0rse", "\n  host: db"),
        ("User name: ada\nPassword: ", "Winter2031!", "\n"),
        ('{\\"password\\": \\"', "a1B2c3D4", '\\"}'),
        ("secret_key := `", "k3yk3yk3yk3y", "`"),
        ("password=", "Passw0rd2024!", ""),
        ("password: ", "secret123!A9", ""),
        ("password=", "kQ9your7Zp2", ""),
        ("password=", "a7xxxxQ9k2", ""),
        ("export GITHUB_TOKEN=", "a1B2c3D4e5F6", ""),
        ("?token=", "a1B2c3D4e5F6", "&page=2"),
        ("slack:\n  bot_token: ", "a1B2c3D4e5F6", "\n"),
        ("Authorization: Basic ", "YWRhOmNvcnJlY3QtaG9yc2U=", ""),
        ("curl -H 'authorization: basic ", "YWRhOmh1bnRlcjI", "'"),
    ],
)
def test_what_is_assigned_to_the_name_of_a_secret_is_masked(before, secret, after):
    assert secret_tags(f"{before}{secret}{after}") == {"s": ["secret"]}
    assert mask(f"{before}{secret}{after}") == f"{before}[secret removed]{after}"


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


def test_where_a_piece_is_cut_no_line_begins_or_ends():
    size, step = PIECE_CHARS, PIECE_CHARS - OVERLAP_CHARS
    rest = " b" * size
    for sentence, cut in (
        ("a" * step + "password: abc123x45" + "\n" + rest, step),
        ("\n".rjust(size - 30, "a") + "password: abc123x4567890123456" + rest, size),
        ("\n".rjust(size - 25, "a") + "password = abc123x45,c    " + rest, size),
    ):
        assert find_secrets(sentence) == [], cut


@pytest.mark.parametrize("before", range(PIECE_CHARS - 300, PIECE_CHARS + 10, 7))
def test_an_assignment_is_found_around_the_end_of_a_piece(before):
    text = "a" * before + "\npassword: c0rrect-h0rse" + "\n" + "b " * 2000
    assert mask(text) == text.replace("c0rrect-h0rse", "[secret removed]")


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
            for piece in (
                *("eyJ", "//", "-----BEGIN PRIVATE KEY-----", "AC", "://a:", "aws"),
                *("password=", "token: ", "\ntoken: ", "secret_", "4111|", "dp.pt.", "a: "),
            )
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
