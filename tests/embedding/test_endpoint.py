"""What an endpoint is asked, what its vectors become, which addresses are taken, and many threads at one."""

from __future__ import annotations

import base64
import math
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from store.embedding.endpoint import KEY_VARIABLE, Endpoint
from store.errors import ConfigError, EmbeddingFailed

Failure = Callable[..., EmbeddingFailed]


def unit(values: list[float]) -> np.ndarray:
    return np.array(values) / np.linalg.norm(values)


def vectors(*given: Any) -> Callable[[list[str]], Any]:
    """An answer of these vectors, whatever was asked."""
    return lambda texts: {"data": [{"index": at, "embedding": each} for at, each in enumerate(given)]}


def test_texts_become_rows_of_length_one(service: Any, endpoint: Endpoint) -> None:
    texts = ["Alpha", "beta: a much longer text", "γάμμα 🦊 \x00 \ud800"]
    made = endpoint.embed(texts)
    assert made.dtype == np.float32
    assert made.shape == (3, 4)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(made[1], unit(service.numbers(texts[1])), atol=1e-6)
    (asked,) = service.asked
    sent = [*texts[:2], texts[2].replace("\ud800", "?")]
    assert asked == {"model": "small-model", "encoding_format": "float", "input": sent}
    assert service.paths == ["/v1/embeddings?api-version=hush"]
    (headers,) = service.headers
    assert headers["authorization"] == f"Bearer {service.key}"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "deskbook"
    assert headers["host"] == service.url.split("/")[2]
    assert "cookie" not in headers


@pytest.mark.parametrize("key", [None, "", "  \n"])
def test_without_a_key_none_is_sent(service: Any, connect: Callable[..., Endpoint], key: str | None) -> None:
    connect(service.url, key=key).embed(["a"])
    assert "authorization" not in service.headers[0]


def test_white_space_around_a_key_is_left_out(service: Any, connect: Callable[..., Endpoint]) -> None:
    connect(service.url, key=f" {service.key}\n").embed(["a"])
    assert service.headers[0]["authorization"] == f"Bearer {service.key}"


def test_the_environment_gives_neither_proxy_nor_password(
    service: Any, connect: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ann password hush\n")
    monkeypatch.setenv("NETRC", str(netrc))
    connect(service.url, key=None).embed(["a"])
    assert "authorization" not in service.headers[0]


def test_a_cookie_is_not_sent_back(service: Any, endpoint: Endpoint) -> None:
    service.reply = service.answering(200, **{"Set-Cookie": "a=b"})
    endpoint.embed(["a"])
    endpoint.embed(["a"])
    assert "cookie" not in service.headers[1]


def test_the_index_says_whose_a_vector_is(service: Any, endpoint: Endpoint) -> None:
    def shuffled(texts: list[str]) -> Any:
        data = service.listed(texts)["data"]
        random.Random(7).shuffle(data)
        assert [each["index"] for each in data] != list(range(len(data)))
        return {"data": data}

    texts = [f"text {at}" for at in range(20)]
    plain = endpoint.embed(texts)
    service.answer = shuffled
    np.testing.assert_array_equal(endpoint.embed(texts), plain)


@pytest.mark.parametrize("index", [{}, {"index": None}])
def test_without_any_index_the_order_counts(service: Any, endpoint: Endpoint, index: Any) -> None:
    service.answer = lambda texts: {"data": [{**index, "embedding": service.numbers(text)} for text in texts]}
    np.testing.assert_allclose(endpoint.embed(["a", "bcd"])[1], unit(service.numbers("bcd")), atol=1e-6)


def test_base64_is_read_as_well(service: Any, endpoint: Endpoint) -> None:
    plain = endpoint.embed(["a", "bcd"])

    def packed(texts: list[str]) -> Any:
        data = service.listed(texts)["data"]
        for each in data:
            each["embedding"] = base64.b64encode(struct.pack("<4f", *each["embedding"])).decode()
        return {"data": data}

    service.answer = packed
    np.testing.assert_array_equal(endpoint.embed(["a", "bcd"]), plain)


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e300])
def test_a_vector_of_any_size_has_length_one(service: Any, endpoint: Endpoint, scale: float) -> None:
    service.answer = vectors([scale, 0, -scale])
    np.testing.assert_allclose(endpoint.embed(["a"]), [[math.sqrt(0.5), 0, -math.sqrt(0.5)]], atol=1e-6)


def test_many_texts_go_in_several_requests(service: Any, endpoint: Endpoint) -> None:
    texts = [f"text {at}" for at in range(130)]
    made = endpoint.embed(texts)
    assert [len(asked["input"]) for asked in service.asked] == [64, 64, 2]
    np.testing.assert_allclose(made, [unit(service.numbers(text)) for text in texts], atol=1e-6)
    assert len(service.clients) == 1  # one connection serves them all


def test_long_texts_go_in_several_requests(service: Any, endpoint: Endpoint) -> None:
    texts = ["é" * 50_000, "b" * 100_000, "c" * 100_000, "🦊" * 100_000, "e"]
    endpoint.embed(texts)
    assert [len(asked["input"]) for asked in service.asked] == [2, 1, 1, 1]
    assert [text for asked in service.asked for text in asked["input"]] == texts


def test_blank_text_is_sent_as_a_full_stop(service: Any, endpoint: Endpoint) -> None:
    made = endpoint.embed(["", " \n\t", "x"])
    assert service.asked[0]["input"] == [".", ".", "x"]
    assert made.shape == (3, 4)


def test_no_texts_are_no_request(service: Any, endpoint: Endpoint) -> None:
    assert endpoint.embed([]).shape == (0, 0)
    assert service.asked == []
    endpoint.embed(["a"])
    assert endpoint.embed([]).shape == (0, 4)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434/v1",
        "http://127.8.9.10",
        "http://[::1]:8080/v1/",
        "http://localhost:1234",
        "HTTP://LOCALHOST",
        "https://api.openai.com/v1",
        "https://desk.example/a?b=c",
    ],
)
def test_addresses_that_are_taken(url: str) -> None:
    endpoint = Endpoint(url, "m")
    assert endpoint.model == "m"
    endpoint.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example/v1",
        "http://10.0.0.1/v1",
        "http://0.0.0.0:8080",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://[::2]/",
        "http://128.0.0.1",
    ],
)
def test_plain_http_to_another_machine_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="plain http") as caught:
        Endpoint(url, "m")
    assert caught.value.field == "embedding.url"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com/v1",
        "ftp://desk.example",
        "https://",
        "https://ann:hush@desk.example/v1",
        "https://hush@desk.example/v1",
        "https://desk.example:0",
        "https://desk.example:99999",
        "https://desk.example:port",
        "https://[::1",
        "https://dësk.example",
        "https://desk.example/hush hush",
        "https://desk.example/\nhush",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint(url, "m")
    assert caught.value.field == "embedding.url"
    assert "hush" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("key", ["two words", "line\nend", "clé", "tab\tbed", "nul\x00"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("https://desk.example", "m", key=key)
    assert key not in f"{caught.value} {caught.value.hint}"
    assert KEY_VARIABLE in str(caught.value.hint)


@pytest.mark.parametrize("model", ["", " ", "m" * 129])
def test_what_is_no_model_is_refused(model: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("https://desk.example", model)
    assert caught.value.field == "embedding.model"


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan])
def test_a_timeout_is_finite(timeout: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Endpoint("https://desk.example", "m", timeout=timeout)


def test_the_key_is_not_shown(service: Any, endpoint: Endpoint) -> None:
    assert service.key not in repr(endpoint)


def test_importing_and_making_one_loads_no_library() -> None:
    script = (
        "import sys; from store.embedding.endpoint import Endpoint; Endpoint('https://a.example', 'm').pieces('a');"
        "print([name for name in ('numpy', 'httpcore2', 'httpx2', 'anyio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_many_threads_share_one(service: Any, endpoint: Endpoint) -> None:
    def embed(at: int) -> None:
        texts = [f"{at} {each}" for each in range(at % 5 + 1)]
        np.testing.assert_allclose(
            endpoint.embed(texts), [unit(service.numbers(text)) for text in texts], atol=1e-6
        )

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(embed, range(200)))
    assert len(service.asked) == 200


def test_threads_wait_for_a_connection_no_longer_than_for_an_answer(
    service: Any, connect: Callable[..., Endpoint], failure: Failure
) -> None:
    service.reply = service.silent
    endpoint = connect(service.url, timeout=0.5)
    with ThreadPoolExecutor(24) as threads:
        faults = list(threads.map(lambda _: failure(endpoint), range(24)))
    assert {fault.message for fault in faults} == {"The embedding endpoint did not answer within 0.5 s."}
    service.reply = service.answering(200)
    endpoint._timeout = 20.0
    endpoint.embed(["a"])


def test_of_replies_that_differ_in_size_the_first_counts(service: Any, endpoint: Endpoint) -> None:
    service.answer = lambda texts: vectors([1.0] * int(texts[0]))(texts)

    def embed(at: int) -> int | None:
        try:
            return int(endpoint.embed([str(at % 2 + 2)]).shape[1])
        except EmbeddingFailed:
            return None

    with ThreadPoolExecutor(8) as threads:
        sizes = list(threads.map(embed, range(40)))
    assert len(set(sizes) - {None}) == 1


def test_a_closed_one_takes_no_more(service: Any, endpoint: Endpoint, failure: Failure) -> None:
    endpoint.embed(["a"])
    endpoint.close()
    endpoint.close()
    fault = failure(endpoint)
    assert "closed" in fault.message
    assert not fault.retryable
    assert len(service.asked) == 1


def test_closing_lets_a_request_under_way_end(service: Any, endpoint: Endpoint) -> None:
    begun = threading.Event()

    def reply(handler: Any, made: bytes) -> None:
        begun.set()
        service.released.wait(30)
        service.answering(200)(handler, made)

    service.reply = reply
    with ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(endpoint.embed, ["a"])
        assert begun.wait(30)
        endpoint.close()
        service.released.set()
        assert under_way.result(30).shape == (1, 4)
    assert endpoint._pool is None
