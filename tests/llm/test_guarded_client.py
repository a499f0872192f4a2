"""What a guarded client connects to, and what it takes from there."""

from __future__ import annotations

import datetime
import gzip
import socket
import ssl
import threading

import httpx2
import openai
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from llm import client, transport
from llm.errors import ModelRefused, ModelUnavailable
from llm.transport import AddressRefused, GuardedTransport
from tests.llm.conftest import KEY, MESSAGES, complete, of_a_user
from tests.model_server import CHAT, CutOff, Slow, Status


class Names:
    """A name server that says what the test wants, each answer once but the last."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, host, port):
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


def guarded(names, *, is_allowed=lambda address: address == "127.0.0.1", timeout_s=5):
    """A client that takes this machine for the internet and resolves the test's names."""
    return httpx2.Client(
        transport=GuardedTransport(resolve=names, is_allowed=is_allowed),
        trust_env=False,
        timeout=timeout_s,
    )


def port_of(model_server):
    return model_server.base_url.rsplit(":", 1)[1].removesuffix("/v1")


def post(http, model_server, host="model.example.org"):
    address = f"http://{host}:{port_of(model_server)}{CHAT}"
    return http.post(address, json={"model": "m", "messages": MESSAGES})


def test_the_address_that_was_checked_is_the_one_connected_to(model_server):
    """Nobody but the test knows this name: a second look-up would find nothing."""
    names = Names(["127.0.0.1"])
    with guarded(names) as http:
        assert post(http, model_server).json()["choices"][0]["message"]["content"] == "OK."
    assert names.asked == ["model.example.org"]
    (request,) = model_server.requests
    assert request.headers["host"] == f"model.example.org:{port_of(model_server)}"


def test_a_name_that_changes_its_mind_gains_nothing(model_server):
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    with guarded(names) as http:
        assert post(http, model_server).status_code == 200
    with guarded(names) as http, pytest.raises(AddressRefused, match=r"model\.example\.org is"):
        post(http, model_server)
    assert len(model_server.requests) == 1


@pytest.mark.parametrize("answer", [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"]])
def test_one_address_within_spoils_the_others(model_server, answer):
    with guarded(Names(answer)) as http, pytest.raises(AddressRefused):
        post(http, model_server)
    assert model_server.requests == []


def test_a_redirect_is_not_followed_by_a_guarded_client(closed, model_server):
    assert not client.connect(of_a_user(model_server.base_url))._client.follow_redirects


def test_a_redirect_gets_a_message(model_server, db, settings):
    settings.LLM_MAX_RETRIES = 0
    model_server.answer(Status(307))
    with pytest.raises(ModelRefused, match="redirects to another address"):
        complete(of_a_user(model_server.base_url))


def test_the_next_address_is_tried_when_one_does_not_answer(model_server):
    names = Names(["::1", "127.0.0.1"])
    # Nobody listens on the first: the model server is bound to one address only.
    with guarded(names, is_allowed=lambda _address: True) as http:
        assert post(http, model_server).status_code == 200


@pytest.mark.parametrize("answer", [[], socket.gaierror("no such name")])
def test_a_name_without_an_address_is_a_failed_connection(model_server, answer):
    with guarded(Names(answer)) as http, pytest.raises(httpx2.ConnectError):
        post(http, model_server)


def test_a_name_that_is_none_is_a_failed_connection():
    with pytest.raises(OSError, match="not a name"):
        transport.resolve("a" * 64 + ".example.org", 80)


def test_silence_is_a_timeout(model_server):
    model_server.answer(Slow(5))
    with guarded(Names(["127.0.0.1"]), timeout_s=0.2) as http, pytest.raises(httpx2.ReadTimeout):
        post(http, model_server)


def test_an_answer_that_breaks_off_is_an_error_of_the_protocol(model_server):
    model_server.answer(CutOff())
    with guarded(Names(["127.0.0.1"])) as http, pytest.raises(httpx2.RemoteProtocolError):
        post(http, model_server)


def test_the_library_understands_the_guarded_clients_errors(model_server):
    model_server.script([CutOff(), Status(500), Slow(5)])
    library = openai.OpenAI(
        base_url=model_server.base_url,
        api_key=KEY,
        max_retries=0,
        http_client=guarded(Names(["127.0.0.1"])),
    )
    ask = library.chat.completions.create
    for sentence in (
        "could not be reached; check that it runs",
        "failed with status 500",
        "did not answer in time",
    ):
        with (
            pytest.raises(ModelUnavailable, match=sentence),
            client.translated(of_a_user(model_server.base_url)),
        ):
            ask(model="m", messages=MESSAGES, timeout=0.3)
    library.close()


def test_the_library_does_not_ask_again_for_a_refused_address():
    names = Names(["10.0.0.1"])
    library = openai.OpenAI(
        base_url="http://model.example.org/v1",
        api_key=KEY,
        max_retries=2,
        http_client=guarded(names),
    )
    with pytest.raises(AddressRefused):
        library.chat.completions.create(model="m", messages=MESSAGES)
    assert names.asked == ["model.example.org"]
    library.close()


class Raw:
    """A server that sends these bytes to every client, the last ones over and over if asked to."""

    def __init__(self, head, body=b"", *, endless=False):
        self._head, self._body, self._endless = head, body, endless

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def _serve(self):
        connection, _ = self._socket.accept()
        with connection:
            connection.recv(65536)
            try:
                connection.sendall(self._head + self._body)
                while self._endless:
                    connection.sendall(self._body)
            except OSError:
                return  # The client has had enough.

    def __exit__(self, *_exception):
        self._socket.close()
        self._thread.join(5)


def test_an_answer_without_end_is_broken_off():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    with (
        Raw(head, b" " * 2**20, endless=True) as server,
        guarded(Names(["127.0.0.1"])) as http,
        pytest.raises(httpx2.ReadError, match="does not end"),
    ):
        http.get(f"http://model.example.org:{server.port}/")


def test_a_compressed_answer_is_not_unpacked():
    body = gzip.compress(b"x" * 10_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        Raw(head.encode(), body) as server,
        guarded(Names(["127.0.0.1"])) as http,
        pytest.raises(httpx2.DecodingError),
    ):
        http.get(f"http://model.example.org:{server.port}/")


def test_a_guarded_client_asks_for_plain_answers():
    with client.guarded_client() as http:
        assert http.build_request("GET", "https://example.org").headers["accept-encoding"] == (
            "identity"
        )


@pytest.fixture
def certified(tmp_path, monkeypatch):
    """A TLS server for model.example.org, trusted by programs that start now; its port."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "model.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("model.example.org")]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setattr(transport, "tls", httpx2.create_ssl_context)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve_tls, args=[listening, context])
        thread.start()
        yield listening.getsockname()[1]
        thread.join(5)


def _serve_tls(listening, context):
    plain, _ = listening.accept()
    with plain:
        try:
            with context.wrap_socket(plain, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")
        except OSError:
            return  # The client did not trust us.


def test_a_certificate_is_checked_for_the_name_and_not_the_number(certified):
    with guarded(Names(["127.0.0.1"])) as http:
        assert http.get(f"https://model.example.org:{certified}/").text == "OK"


def test_a_certificate_of_another_name_is_refused(certified):
    with guarded(Names(["127.0.0.1"])) as http, pytest.raises(httpx2.ConnectError, match="ertific"):
        http.get(f"https://other.example.org:{certified}/")
