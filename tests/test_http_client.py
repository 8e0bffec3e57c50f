"""Outgoing HTTP: what holds for every request, whoever sends it."""

from __future__ import annotations

import gzip
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InvalidOption, LanguageModelUnavailable, ServerUnavailable
from satchel.http_client import Event, HttpClient, HttpProblem, events
from satchel.integrations.openai.chat_model import OpenAILanguageModel
from satchel.service.remote_client import RemoteSatchel
from tests.support.endpoint import Answer, Endpoint, serving

KEY = "satchel_very-secret-token-0123456789"
COMPLETION = json.dumps({"choices": [{"message": {"content": "It waits."}}]}).encode()
EXPANSION = {
    "id": "a",
    "path": "a",
    "start_line": 1,
    "end_line": 1,
    "text": "x",
    "language": None,
    "stale": False,
    "page": None,
}


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(lambda _: COMPLETION) as server:
        yield server


@pytest.fixture
def other() -> Iterator[Endpoint]:
    with serving(lambda _: COMPLETION) as server:
        yield server


def complete(url: str) -> str:
    return OpenAILanguageModel("tiny", url=url, key=KEY, tries=1).complete("Well?", max_tokens=9).content


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_language_models_are_asked_through_the_proxy_of_the_environment(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"{scheme}127.0.0.1:{endpoint.server_port}")
    assert complete("http://model.invalid/v1") == "It waits."
    assert endpoint.paths == ["http://model.invalid/v1/chat/completions"]
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "model.invalid")
    with pytest.raises(LanguageModelUnavailable, match="cannot be reached"):
        complete("http://model.invalid/v1")


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9", "http://[::1", "http://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_an_error(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy)
    with pytest.raises(LanguageModelUnavailable, match="cannot be reached"):
        complete("http://model.invalid/v1")


def test_a_satchel_server_is_asked_without_a_proxy(
    endpoint: Endpoint, other: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    endpoint.answers += [Answer(body=json.dumps(EXPANSION).encode())]
    with RemoteSatchel(endpoint.url, token=KEY) as client:
        assert client.expand("a.py").text == "x"
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert other.paths == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_does_not_follow_a_redirect(endpoint: Endpoint, other: Endpoint, status: int) -> None:
    endpoint.answers += [Answer(status, b"", {"Location": f"{other.url}/elsewhere"})]
    with RemoteSatchel(endpoint.url, token=KEY) as client, pytest.raises(ServerUnavailable, match=str(status)):
        client.expand("a.py")
    assert endpoint.keys == [f"Bearer {KEY}"]
    assert other.paths == []


def test_a_server_that_hangs_up_is_asked_once(endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(hangs_up=True), Answer(hangs_up=True)]
    with pytest.raises(LanguageModelUnavailable, match=r"cannot be reached: .*disconnected.*after 1 tries"):
        complete(endpoint.url)
    with RemoteSatchel(endpoint.url) as client, pytest.raises(ServerUnavailable, match=r"no answer .*disconnected"):
        client.expand("a.py")
    assert len(endpoint.bodies) == 2


def test_a_server_that_is_silent_is_given_up(endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(hang=True), Answer(parts=[b": wait\n\n"], falls_silent=True)]
    with RemoteSatchel(endpoint.url, timeout=0.2) as client:
        with pytest.raises(ServerUnavailable, match="timed out"):
            client.expand("a.py")
        with pytest.raises(ServerUnavailable, match="timed out"):
            client.expand("a.py")


def test_an_index_run_that_breaks_off_is_an_error(endpoint: Endpoint) -> None:
    endpoint.answers += [
        Answer(parts=[b"event: progress\ndata: {}\n\n"], breaks_off=True),
        Answer(parts=[b": bye\n\n"]),
    ]
    with RemoteSatchel(endpoint.url) as client:
        with pytest.raises(ServerUnavailable, match="peer closed connection"):
            client.index()
        with pytest.raises(ServerUnavailable, match="the connection was lost while the server was indexing"):
            client.index()


def test_no_answer_is_decompressed(endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(body=gzip.compress(COMPLETION), headers={"Content-Encoding": "gzip"})]
    with pytest.raises(LanguageModelUnavailable, match="is invalid"):
        complete(endpoint.url)


def test_an_answer_is_read_up_to_its_limit(endpoint: Endpoint) -> None:
    endpoint.answers += [Answer(body=b"x" * 1000), Answer(body=b"x" * 1001)]
    client = HttpClient(endpoint.url, key="", timeout=5, uses_proxies=True)
    assert len(client.request("POST", "", {}, max_bytes=1000).read()) == 1000
    with pytest.raises(HttpProblem, match="longer than 1,000 bytes") as caught:
        client.request("POST", "", {}, max_bytes=1000).read()
    assert caught.value.status == 200


def test_threads_share_a_client_that_is_closed_and_used_again(endpoint: Endpoint) -> None:
    client = HttpClient(endpoint.url, key=KEY, timeout=5, uses_proxies=True)
    answers: list[bytes] = []

    def ask() -> None:
        answers.append(client.request("POST", "", {}, max_bytes=1000).read())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    ask()
    client.close()
    assert answers == [COMPLETION] * 9


def self_signed_certificate(folder: Path) -> Path:
    """A file with a key and a certificate for 127.0.0.1 that only itself vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "satchel test")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = Encoding.PEM
    path = folder / "certificate.pem"
    path.write_bytes(key.private_bytes(pem, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(pem))
    return path


@pytest.mark.parametrize("uses_proxies", [True, False])
def test_certificates_are_checked_and_the_environment_may_name_another_authority(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uses_proxies: bool
) -> None:
    certificate = self_signed_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True, do_handshake_on_connect=False)
    url = endpoint.url.replace("http:", "https:")
    with pytest.raises(HttpProblem, match="CERTIFICATE_VERIFY_FAILED"):
        HttpClient(url, key=KEY, timeout=5, uses_proxies=uses_proxies).request("POST", "", {}, max_bytes=1000)
    assert endpoint.keys == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    client = HttpClient(url, key=KEY, timeout=5, uses_proxies=uses_proxies)
    assert client.request("POST", "", {}, max_bytes=1000).read() == COMPLETION


def test_a_token_that_no_header_can_carry_is_not_shown() -> None:
    with pytest.raises(InvalidOption, match="copied") as caught:
        RemoteSatchel("http://127.0.0.1:1", token=f"{KEY}\nX-Header: 1")
    assert KEY not in str(caught.value)


def test_the_library_is_loaded_by_the_first_request_only() -> None:
    code = """
import sys
import satchel
from satchel.integrations.embedders.openai_embedder import OpenAIEmbedder
from satchel.integrations.openai.chat_model import OpenAILanguageModel
OpenAILanguageModel("tiny"), OpenAIEmbedder("tiny"), satchel.open("http://127.0.0.1:1")
assert not {"httpx2", "httpcore2", "ssl"} & set(sys.modules), sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# -- server-sent events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [Event("a"), Event("b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event("a"), Event("b")]),
        (b"data: a\r\rdata: b\r\r", [Event("a"), Event("b")]),
        (b"data:a\n\ndata:  b\n\n", [Event("a"), Event(" b")]),
        (b"data: a\ndata: b\n\n", [Event("a\nb")]),
        (b": keep-alive\n\n:\n\ndata: a\n\n: PROCESSING\n\n", [Event("a")]),
        (b"id: 1\nretry: 10\nevent: ping\ndata: a\nnonsense\n\n", [Event("a", "ping")]),
        (b"event: ping\n\ndata: a\n\n", [Event("a")]),
        (b"event: error\ndata: oh\n\n", [Event("oh", "error")]),
        (b"error: oh\n\n", [Event("oh", "error")]),
        (b"data: a\n\ndata: no blank line", [Event("a"), Event("no blank line")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: \xff\n\n", [Event("�")]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_events_are_read_as_the_standard_has_them(stream: bytes, expected: list[Event]) -> None:
    assert list(events([stream])) == expected
    assert list(events(stream[i : i + 1] for i in range(len(stream)))) == expected


@given(
    st.lists(st.text(alphabet="aé漢😀 :", min_size=1, max_size=9), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.data(),
)
def test_law_however_it_is_cut_the_same_is_read(words: list[str], end: str, data: st.DataObject) -> None:
    stream = "".join(f"data: {word}{end}{end}" for word in words).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event.data for event in events(chunks)] == words


def test_a_line_without_an_end_is_read_in_linear_time() -> None:
    (event,) = events([b"data: ", *[b"x"] * 300_000])
    assert len(event.data) == 300_000
