"""Where to and with which key: a target is whole and safe, and its key opens nothing of the desk itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.publishing.request import build_request
from server.publishing.target import Target, find_target
from server.reviewer_file import reviewer_path
from server.reviewers import VARIABLE, add_token
from server.settings import load_settings
from server.tokens import new_token, revoke, token_path
from store.errors import ConfigError, InvalidInput
from store.publications import Publication

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "community-key-0123456789"
HTTPS = "https://community.example/posts"


@pytest.fixture
def find(tmp_path: Path) -> Callable[..., Target]:
    """The target that a config and an environment name."""

    def found(endpoint: str | None = HTTPS, key: str | None = KEY, more: str = "", **environ: str) -> Target:
        address = "" if endpoint is None else f'endpoint = "{endpoint}"\n'
        named = "" if key is None else 'key_env = "PUBLISH_KEY"\n'
        config = tmp_path / "desk.toml"
        config.write_text(f'[agents.ann]\nprofile = "trader"\n{more}[publish]\n{address}{named}')
        settings = load_settings(config=config, flags={"root": str(tmp_path)}, environ={})
        return find_target(settings, {"PUBLISH_KEY": key or "", **environ})

    return found


def refused(find: Callable[..., Target], *given: Any, **more: Any) -> ConfigError:
    """The error, which never shows a key."""
    with pytest.raises(ConfigError) as caught:
        find(*given, **more)
    fault = caught.value
    for secret in (*given[1:2], *more.values()):
        assert (
            not (isinstance(secret, str) and secret.strip()) or secret not in f"{fault.message} {fault.hint}"
        )
    assert fault.hint
    return fault


@pytest.mark.parametrize("url", [
    HTTPS, f"{HTTPS}?space=a", "https://192.0.2.1:8443/", "http://127.0.0.1:80/x", "http://127.9.9.9/x",
    "http://localhost/x", "http://[::1]:8080/x",
])  # fmt: skip
def test_https_goes_anywhere_and_plain_http_to_this_machine(find: Callable[..., Target], url: str) -> None:
    target = find(url)
    assert (target.url, target.key, target.seconds) == (url, KEY, 20)
    assert target.recorded == url.partition("?")[0]
    assert KEY not in repr(target)


@pytest.mark.parametrize("url", [
    "http://community.example/posts", "http://192.0.2.1/posts", "http://127.0.0.1.example/posts",
    "http://[2001:db8::1]/posts", "http://0.0.0.0/posts", "http://localhost.example/x", "HTTP://192.0.2.1/",
])  # fmt: skip
def test_plain_http_to_another_machine_is_refused(find: Callable[..., Target], url: str) -> None:
    assert "plain http" in refused(find, url).message


@pytest.mark.parametrize("url", ["https://gemeinschäft.example/", "https://a.example/ä"])
def test_an_address_is_ascii(find: Callable[..., Target], url: str) -> None:
    assert refused(find, url).field == "publish.endpoint"


def test_what_is_missing_is_named(find: Callable[..., Target]) -> None:
    assert refused(find, None).field == "publish.endpoint"
    assert refused(find, HTTPS, None).field == "publish.key_env"


@pytest.mark.parametrize(
    "key", ["", "   ", "two words", "short", "x" * 1_025, "kéy-0123456789", "a\nb-0123456789"]
)
def test_a_key_that_cannot_be_sent_is_refused(find: Callable[..., Target], key: str) -> None:
    fault = refused(find, HTTPS, key)
    assert fault.message.startswith("PUBLISH_KEY, which [publish] key_env names")


def test_an_address_that_holds_the_key_is_refused(find: Callable[..., Target]) -> None:
    assert refused(find, f"{HTTPS}?key={KEY}", KEY).field == "publish.endpoint"


def test_no_token_of_the_desk_is_a_key_not_even_one_that_has_ended(
    find: Callable[..., Target], tmp_path: Path
) -> None:
    path = token_path(tmp_path)
    alive, ended = (new_token(path, "ann") for _ in range(2))
    revoke(path, ids=[ended.record.id])
    reviewer = add_token(reviewer_path(tmp_path), "pat")
    stranger = new_token(path, "nobody-here")
    for token in (alive.token, ended.token, stranger.token, reviewer, "dbk_x-0123456789", "dbr_x-0123456789"):
        assert refused(find, HTTPS, token).message == "The key for publishing is a token of this desk."


def test_no_other_key_of_the_desk_is_one(find: Callable[..., Target]) -> None:
    bob = '[agents.bob]\nprofile = "trader"\ntoken_env = "BOB_TOKEN"\n'
    assert "token of this desk" in refused(find, HTTPS, KEY, bob, BOB_TOKEN=KEY).message
    assert "token of this desk" in refused(find, HTTPS, KEY, **{VARIABLE: KEY}).message
    assert "embedding" in refused(find, HTTPS, KEY, DESKBOOK_EMBEDDING_KEY=KEY).message
    sign = '[checkpoint]\nkey_env = "SIGN_KEY"\n'
    assert "signs checkpoints" in refused(find, HTTPS, KEY, sign, SIGN_KEY=KEY).message
    same = '[checkpoint]\nkey_env = "PUBLISH_KEY"\n'
    assert "signs checkpoints" in refused(find, HTTPS, KEY, same).message
    assert "signs checkpoints" in refused(find, HTTPS, "PRIVATE+KEY+deskbook+00000000+AAAA").message
    assert find(HTTPS, KEY, bob + sign, BOB_TOKEN="b" * 30, SIGN_KEY="s" * 30).key == KEY


@pytest.mark.parametrize("where", ["body", "parent_post_id", "verified_trade_source"])
def test_the_key_is_never_part_of_what_is_published(find: Callable[..., Target], where: str) -> None:
    for key in (KEY, 'quo"ted\\key-0123'):
        held: Any = {"trade": key} if where == "verified_trade_source" else f"x {key} x"
        given = {"endpoint": HTTPS, "body": "A text.", where: held}
        with pytest.raises(InvalidInput) as caught:
            build_request(find(HTTPS, key), Publication(**given))
        assert key not in f"{caught.value.message} {caught.value.hint}"


def test_the_page_shows_a_request_as_it_is_sent() -> None:
    page = (Path(__file__).parents[2] / "docs" / "publishing.md").read_text()
    url = "https://community.example/community/agent/posts"
    publication = Publication(endpoint=url, body="Trimmed on strength.", marketplace_listing_id="list-1")
    shown = build_request(Target(url, "community.example", KEY, 20), publication).shown()
    assert "```text\n" + "\n".join(shown) + "\n```" in page
