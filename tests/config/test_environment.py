"""Settings from the environment: a value that makes no sense stops the start in one sentence."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from config.environment import KEY_FILE, read_keys

A_SERVER = {
    "DATABASE_URL": "postgresql://loci:secret@elsewhere/loci",
    "REDIS_URL": "redis://elsewhere/0",
    "LOCI_SECRET_KEY": "k" * 50,
}


SECONDS = (
    "LOCI_DB_POOL_WAIT_S LOCI_READ_UPLOAD_S LOCI_WORKING_MEMORY_TTL_S LOCI_WORKING_ENTRY_TTL_S "
    "LOCI_LLM_TIMEOUT_S LOCI_RERANK_TIMEOUT_S LOCI_TURN_DEADLINE_S"
).split()
WHOLE = (
    "LOCI_HSTS_S LOCI_DB_POOL LOCI_QUOTA_MESSAGES LOCI_WORKING_ENTRIES LOCI_BACKUP_KEEP "
    "LOCI_CHAT_TURNS LOCI_EMBEDDING_DIMENSIONS LOCI_LLM_MAX_RETRIES"
).split()
NUMBERS = (
    "LOCI_DB_START_WAIT_S LOCI_MAX_UPLOAD_MB LOCI_QUOTA_MB LOCI_BACKUP_EVERY_H "
    "LOCI_TAKE_UP_AFTER_S LOCI_MINE_AFTER_S LOCI_RECALL_MEMORY_MB"
).split()
# Of each number: what is none, and what no wait, size or count can be.
NO_NUMBERS = ["many", "nan", "inf", "-1", "1e300"]


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("name", [*SECONDS, *WHOLE, *NUMBERS])
def test_a_number_that_makes_no_sense_is_refused(read_settings, name, value):
    with pytest.raises(ImproperlyConfigured, match=rf"^{name} .*must be .*\.$"):
        read_settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        *((name, "0", "must be above 0") for name in SECONDS),
        *((name, "2.5", "must be a whole number") for name in WHOLE),
        ("LOCI_WORKING_ENTRIES", "0", "must be 1 or more"),
        ("LOCI_EMBEDDING_DIMENSIONS", "16001", "up to 16000"),
        ("LOCI_WORKING_ENTRY_TTL_S", "2592001", "up to 2592000"),
        ("LOCI_API_RATE", "lots", "a rate such as 600/minute"),
        ("LOCI_API_RATE", "600", "a rate such as 600/minute"),
        ("LOCI_API_RATE", "10/second;5/fortnight", "a rate such as 600/minute"),
        ("LOCI_API_RATE", "0/minute", "empty for no limit"),
        ("LOCI_LOG_LEVEL", "loud", "must be debug, info, warning or error"),
        ("LOCI_HTTPS", "perhaps", "must be true or false"),
        ("LOCI_TRUSTED_ORIGINS", "loci.example.org", "an address without a path"),
        ("LOCI_CORS_ORIGINS", "https://[app.example.org", "an address without a path"),
        ("LOCI_CORS_ORIGINS", "https://app.example.org:port", "an address without a path"),
        ("LOCI_PUBLIC_URL", "https://loci.example.org:99999", "an address without a path"),
    ],
)
def test_the_sentence_says_what_the_value_may_be(read_settings, name, value, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence) as refused:
        read_settings(**{name: value})
    assert str(refused.value).startswith(f"{name} is ")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "a-secret-nonsense"),
        ("DATABASE_URL", "mysql://loci:a-secret@elsewhere/loci"),
        ("DATABASE_URL", "postgresql://loci:a-secret@elsewhere:port/loci"),
        ("DATABASE_URL", "postgresql://loci:a-secret@[elsewhere/loci"),
        ("REDIS_URL", "a-secret-nonsense"),
        ("REDIS_URL", "redis://:a-secret@elsewhere:port/0"),
        ("REDIS_URL", "postgresql://loci:a-secret@elsewhere/loci"),
    ],
)
def test_an_address_of_something_else_is_refused_without_showing_it(read_settings, name, url):
    with pytest.raises(ImproperlyConfigured, match=f"^{name} must begin with") as refused:
        read_settings(**{**A_SERVER, name: url})
    assert "a-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"LOCI_VECTOR_STORE": "pinecone"}, "must be one of postgres, qdrant, chroma, faiss, milv"),
        ({"LOCI_VECTOR_STORE": "qdrant"}, "must be the address of a qdrant server"),
        (
            {"LOCI_VECTOR_STORE": "qdrant", "LOCI_VECTOR_STORE_URL": "http://[a-secret"},
            "must be the address of a qdrant server",
        ),
        (
            {"LOCI_VECTOR_STORE": "qdrant", "LOCI_VECTOR_STORE_URL": "/folder/with-a-secret"},
            "only one can open a folder",
        ),
        ({"LOCI_VECTOR_STORE_URL": "http://a-secret@localhost"}, "set LOCI_VECTOR_STORE, too"),
        ({"LOCI_VECTOR_STORE_COLLECTION": "Facts!"}, "lower-case letters, digits and underscores"),
    ],
)
def test_a_vector_store_that_makes_no_sense_is_refused(read_settings, environment, sentence):
    with pytest.raises(ImproperlyConfigured, match=sentence) as refused:
        read_settings(**environment)
    assert str(refused.value).startswith("LOCI_VECTOR_STORE")
    assert "a-secret" not in str(refused.value)


def test_a_vector_store_whose_client_is_not_installed_is_refused(read_settings, monkeypatch):
    monkeypatch.setattr("importlib.machinery.PathFinder.find_spec", lambda *_: None)
    where = {"LOCI_VECTOR_STORE": "milvus", "LOCI_VECTOR_STORE_URL": "http://localhost:19530"}
    with pytest.raises(ImproperlyConfigured, match=r"pip install 'locipalace\[milvus\]'"):
        read_settings(**where)


def test_a_vector_store_has_an_address_or_a_folder(read_settings):
    assert read_settings().VECTOR_STORE == "postgres"
    url = "http://localhost:6333"
    read = read_settings(LOCI_VECTOR_STORE="qdrant", LOCI_VECTOR_STORE_URL=url)
    assert ("qdrant", url) == (read.VECTOR_STORE, read.VECTOR_STORE_URL)


def test_what_makes_sense_is_taken(read_settings):
    server = read_settings(
        **A_SERVER,
        LOCI_API_RATE=" 10/second;5000/day ",
        LOCI_LOG_LEVEL="warning",
        LOCI_DB_POOL="0",
        LOCI_TAKE_UP_AFTER_S="0",
        LOCI_QUOTA_MB="0.5",
        LOCI_WORKING_ENTRIES="12",
    )
    assert server.API_RATE == "10/second;5000/day"
    assert server.LOGGING["root"]["level"] == "WARNING"
    assert (server.DB_POOL, server.TAKE_UP_AFTER_S, server.QUOTA_MB) == (0, 0, 0.5)
    assert server.WORKING_ENTRIES == 12
    assert read_settings(**A_SERVER, LOCI_API_RATE="").API_RATE == ""


def test_origins_are_taken_as_browsers_spell_them(read_settings):
    given = "https://Loci.example.org/, https://*.example.org:8443"
    read = read_settings(LOCI_TRUSTED_ORIGINS=given, LOCI_CORS_ORIGINS="http://LOCALHOST:6274")
    assert read.CSRF_TRUSTED_ORIGINS == ["https://loci.example.org", "https://*.example.org:8443"]
    assert read.CORS_ORIGINS == ["http://localhost:6274"]
    usual = "https://loci.example.org:443,http://localhost:80,https://loci.example.org:80"
    assert read_settings(LOCI_TRUSTED_ORIGINS=usual).CSRF_TRUSTED_ORIGINS == [
        "https://loci.example.org",
        "http://localhost",
        "https://loci.example.org:80",
    ]
    with pytest.raises(ImproperlyConfigured, match="an address without a path"):
        read_settings(LOCI_TRUSTED_ORIGINS="https://loci.example.org:")


def test_a_value_that_is_empty_counts_as_none(read_settings):
    """As lines of an environment file that were not filled in."""
    names = "LOG_LEVEL LOG_FORMAT HTTPS LLM_TIMEOUT_S EMBEDDING_PROVIDER EMBEDDING_MODEL".split()
    read = read_settings(**{f"LOCI_{name}": " " for name in names})
    assert (read.LOGGING["root"]["level"], read.LOG_JSON, read.HTTPS) == ("INFO", False, False)
    assert (read.LLM_TIMEOUT_S, read.EMBEDDING_PROVIDER) == (60, "local")
    assert read.EMBEDDING_MODEL == "all-MiniLM-L6-v2"


def test_a_file_of_keys_that_is_empty_is_not_taken_for_a_key(tmp_path):
    [key] = read_keys(tmp_path)
    assert read_keys(tmp_path) == [key]
    file = tmp_path / KEY_FILE
    file.write_text("\n")
    with pytest.raises(ImproperlyConfigured, match="is empty: the signing key is lost"):
        read_keys(tmp_path)
    file.unlink()
    assert read_keys(tmp_path) != [key]
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_openais_own_variables_count_where_openai_is_chosen(read_settings):
    usual = {"OPENAI_API_KEY": "sk-usual", "OPENAI_BASE_URL": "https://gateway.example/v1"}
    read = read_settings(LOCI_LLM_PROVIDER="openai", **usual)
    assert (read.LLM_API_KEY, read.LLM_PROVIDER) == ("sk-usual", "https://gateway.example/v1")
    read = read_settings(LOCI_LLM_PROVIDER="openai", LOCI_LLM_API_KEY="sk-ours", **usual)
    assert read.LLM_API_KEY == "sk-ours"


@pytest.mark.parametrize("provider", ["", "anthropic"])
def test_openais_variables_send_nothing_to_openai_by_themselves(read_settings, provider):
    read = read_settings(LOCI_LLM_PROVIDER=provider, OPENAI_API_KEY="sk-usual")
    assert ("", provider) == (read.LLM_API_KEY, read.LLM_PROVIDER)


def test_a_database_that_vanishes_is_noticed_soon(read_settings):
    options = read_settings(**A_SERVER).DATABASE["OPTIONS"]
    assert options["tcp_user_timeout"] == 60_000
    assert options["keepalives_idle"] + 3 * options["keepalives_interval"] <= 60
    own = {**A_SERVER, "DATABASE_URL": f"{A_SERVER['DATABASE_URL']}?keepalives_idle=300"}
    assert read_settings(**own).DATABASE["OPTIONS"]["keepalives_idle"] == 300


def test_with_https_browsers_are_led_to_it_and_keep_to_it(read_settings):
    plain = read_settings(**A_SERVER)
    assert (plain.SECURE_SSL_REDIRECT, plain.SECURE_HSTS_SECONDS) == (False, 0)
    safe = read_settings(**A_SERVER, LOCI_HTTPS="true")
    assert (safe.SECURE_SSL_REDIRECT, safe.SECURE_HSTS_SECONDS) == (True, 31_536_000)
    chosen = read_settings(
        **A_SERVER, LOCI_HTTPS="true", LOCI_HTTPS_REDIRECT="false", LOCI_HSTS_S="0"
    )
    assert (chosen.SECURE_SSL_REDIRECT, chosen.SECURE_HSTS_SECONDS) == (False, 0)


@pytest.fixture
def by_https(settings, client):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_HSTS_SECONDS = 60
    return client


def test_what_came_by_http_is_redirected_but_for_checks(by_https, db):
    answer = by_https.get("/sign-in/")
    assert (answer.status_code, answer["Location"]) == (301, "https://testserver/sign-in/")
    assert by_https.get("/health").status_code == 200


def test_what_the_proxy_took_by_https_is_answered_with_hsts(by_https, db):
    answer = by_https.get("/sign-in/", headers={"X-Forwarded-Proto": "https"})
    assert (answer.status_code, answer["Strict-Transport-Security"]) == (200, "max-age=60")


def test_djangos_checks_for_servers_find_nothing(by_https, settings):
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    call_command("check", deploy=True, fail_level="WARNING")
