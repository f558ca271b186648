"""What is taken for a secret, and what of a trading note is not."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import UTC
from re import _parser as parser  # what a pattern is made of is told nowhere else
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.ids import PREFIXES, new_id
from store.screening import (
    account_numbers,
    folding,
    foreign_signs,
    instruction_signs,
    instructions,
    labelled,
    shapes,
)
from store.screening.secrets import find_secrets, mask

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"

# Put together here: a scanner of repositories takes the whole ones for real.
PLANTED = {
    "an API key": (
        "sk" + "-live-" + "abcdefghijklmnop",
        "sk" + "-ant-" + "api03-" + _MIXED,
        "sk" + "-proj-" + _MIXED + "_" + _MIXED,
        "sk" + "-" + _MIXED,
        "sk" + "_live_" + _MIXED,
        "pk" + "_live_" + _MIXED,
        "whsec" + "_" + _MIXED,
        "AK" + "IA" + "IOSFODNN7EXAMPLE",
        "AS" + "IA" + "IOSFODNN7EXAMPLE",
        "AI" + "za" + "SyA" + _MIXED,
        "SG" + "." + _MIXED[:22] + "." + _MIXED,
        "gsk" + "_" + _MIXED,
        "PK" + "AB12CD34EF56GH78IJ",
        "AK" + "AB12CD34EF56GH78IJ",
    ),
    "an access token": (
        "gh" + "p_" + _MIXED + "abcd",
        "gh" + "o_" + _MIXED + "abcd",
        "github" + "_pat_" + _MIXED,
        "glpat" + "-" + _MIXED[:20],
        "xox" + "b-" + "123456789012-" + _MIXED[:24],
        "xox" + "p-" + "123456789012-" + _MIXED[:24],
        "hf" + "_" + _MIXED,
        "npm" + "_" + _MIXED + "abcd",
        "https://hooks.slack.com/" + "services/T00000000/B00000000/" + _MIXED[:24],
        "dbk" + "_" + "a2b3c4d5e6f7g2h3_" + "abcdefghij234567" * 3 + "abcd",
        "bot" + "123456789:AA" + _MIXED + "a",
    ),
    "a signed token": ("ey" + "JhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + _MIXED,),
    "a private key": (
        "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc==\n-----END " + "RSA PRIVATE KEY-----",
        "-----BEGIN " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nnever ended",
        "xp" + "rv" + "9s21ZrQH143K" + "abcdefghij" * 10,
    ),
    "an IBAN": ("DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "de89370400440532013000"),
    "a card number": ("4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "4111111111111111"),
}
LABELLED = (
    ("password: hunter2", "hunter2"),
    ("Password = swordfish", "swordfish"),
    ("the password is Tr0ub4dor&3.", "Tr0ub4dor&3"),
    ("the password for the broker is 'correct horse'", "correct horse"),
    ('{"password": "x"}', '"x"'),
    ('config["api_key"] = "' + _MIXED + '"', _MIXED),
    ("passphrase: correct horse battery staple", "horse"),
    ("api key is " + _MIXED, _MIXED),
    ("api_secret=" + _MIXED, _MIXED),
    ("client_secret: " + _MIXED, _MIXED),
    ("APCA-API-SECRET-KEY: " + _MIXED, _MIXED),
    ("token: " + _MIXED, _MIXED),
    ("access token = " + _MIXED, _MIXED),
    ("Authorization: Basic " + "dXNlcjpwYXNzd29yZA==", "dXNlcjpw"),
    ("curl -H 'Authorization: Bearer " + _MIXED + "'", _MIXED),
    ("bearer " + _MIXED, _MIXED),
    ("postgres://trader:" + "s3cr3tpw@db.internal/desk", "s3cr3tpw"),
    ("key PK" + "AB12CD34EF56GH78IJ, secret " + _MIXED + "aBcD1234", _MIXED),
    ("account number 12345678", "12345678"),
    ("acct 12345678", "12345678"),
    ("a/c no. 12345678", "12345678"),
    ("account U1234567 at the broker", "U1234567"),
    ("routing 021000021, account 123456789", "021000021"),
    ("sort code 12-34-56", "12-34-56"),
    ("SSN 123-45-6789", "123-45-6789"),
    ("seed phrase: " + "apple brave cloud dream eagle flame grape house ivory joker knife lemon", "grape"),
)
HARMLESS = (
    "Bought 12,500 AAPL at 187.35, stop 181.20, target 205; risk $76,875.00 or 1.5% of equity.",
    "Sold 3 AAPL240621C00190000 and 2 SPXW250117C05000000 for 4.20 credit.",
    "US0378331005 (ISIN) and 037833100 (CUSIP) are the same share as AAPL.",
    "The token is down 12% and its supply is 21000000; token: BTC, token: SOL/USD.",
    "The file is password protected, and the secret sauce is patience.",
    "Password required. Password: required. The secret is patience.",
    'The secret: "buy low, sell high"; secret = "wait 3 days".',
    "Secret to this setup: wait for the retest. Key is the 200-day at 4,512.25.",
    "Private key metrics: DAU 443m, ARPU 12.10. API key figures for the week follow.",
    "Bearer bonds and bearer shares; the bearer of this risk is the fund.",
    "Volume 4111111111111112 was a glitch; order 4111111111111111 filled; order id 5500000000000004.",
    "trade no 4111111111111111 and client order id 378282246310005",
    "Commit 9fceb02d0ae598e95dc970b74767f19372d61af8 changed the sizing.",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "Client order id desk-2025-06-03-AAPL-0007, broker order 550e8400-e29b-41d4-a716-446655440000.",
    "USDC contract: token: 0xdAC17F958D2ee523a2206206994597C13D831ec7 on mainnet.",
    "sk-hynix-raises-dram-capex-guidance is the slug; task-based desk-level risk-adjusted.",
    "Account value 250000, account equity 1250000, account is at 2500000 after fees.",
    "The account 250000 dollars larger than in May; accounts receivable 4500000.",
    "Routing 123456789 shares through the dark pool; call 555-867-5309 at 09:31:05.",
    "2025-06-03T14:30:00Z 1748961000000000 1748961000123456789 are one moment in three spellings.",
    "Authorization: pending. Token economics: deflationary. Credentials: none needed.",
    "https://example.com:8080/path?token and redis://localhost:6379@home are addresses.",
    "password: [masked: a password]; api_key=${API_KEY}; token=<your token here>; secret: ****",
    "IBAN of the example is DE89 3704 0044 0532 0130 01, which fails its check.",
)


@pytest.mark.parametrize(
    ("what", "secret"), [(what, each) for what, all_of in PLANTED.items() for each in all_of]
)
def test_a_secret_is_found_by_its_shape_and_masked_whole(what: str, secret: str) -> None:
    text = f"Before it, {secret}\nand after it."
    masked, whats = mask(text)
    assert whats == (what,)
    assert masked.startswith("Before it, ")
    assert f"[masked: {what}]" in masked
    assert not any(part in masked for part in re.findall(r"\w{12,}", secret))


@pytest.mark.parametrize(("text", "hidden"), LABELLED)
def test_a_secret_is_found_by_its_label(text: str, hidden: str) -> None:
    masked, whats = mask(f"Note. {text}")
    assert whats
    assert hidden not in masked


@pytest.mark.parametrize("text", HARMLESS)
def test_what_trading_notes_are_full_of_is_no_secret(text: str) -> None:
    assert [(each.what, text[each.start : each.end]) for each in find_secrets(text)] == []


def test_the_case_p154_is_found_in_all_its_parts() -> None:
    token = "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    text = f"key {PLANTED['an API key'][0]} and {PLANTED['an API key'][7]} and Bearer {token}"
    masked, whats = mask(text)
    assert whats == ("an API key", "an API key", "a signed token")
    assert masked == "key [masked: an API key] and [masked: an API key] and Bearer [masked: a signed token]"


def test_an_account_number_needs_its_label() -> None:
    assert find_secrets("12345678 shares changed hands") == ()
    assert [each.what for each in find_secrets("account number: 12345678")] == ["an account number"]


def test_letters_that_grow_when_made_small_shift_no_place() -> None:
    masked, whats = mask("İİİİ account number 12345678 İ")
    assert (masked, whats) == ("İİİİ account number [masked: an account number] İ", ("an account number",))


_PIECES = st.one_of(
    st.sampled_from([secret for all_of in PLANTED.values() for secret in all_of]),
    st.sampled_from([text for text, _ in LABELLED]),
    st.sampled_from(
        ["password", "token", "account", ":", "=", " is ", '"', "\n", "-----BEGIN ", "://", "@", "eyJ", "sk-"]
    ),
    st.text(max_size=12),
)


@given(st.lists(_PIECES, max_size=8).map(" ".join))
def test_what_was_masked_holds_no_secret_any_more(text: str) -> None:
    masked, _ = mask(text)
    assert mask(masked) == (masked, ())


@given(st.lists(_PIECES, max_size=8).map("".join))
def test_secrets_come_in_order_and_do_not_overlap(text: str) -> None:
    places = [place for each in find_secrets(text) for place in (each.start, each.end)]
    assert places == sorted(places)
    assert all(each.start < each.end <= len(text) for each in find_secrets(text))


_NUMBERS = st.one_of(
    st.decimals(min_value=0, max_value=10**9, places=4).map(str),
    st.integers(min_value=0, max_value=10**12).map(lambda number: f"{number:,}"),
    st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat()),
    st.uuids().map(str),
    st.sampled_from(list(PREFIXES.values())).map(new_id),
    st.binary(min_size=20, max_size=32).map(bytes.hex),
)


@given(
    st.lists(_NUMBERS, min_size=1, max_size=6),
    st.sampled_from(["at", "for", "id", "volume", "stop", "see", "by"]),
)
def test_numbers_times_ids_and_hashes_are_no_secrets(numbers: list[str], word: str) -> None:
    text = f" {word} ".join(numbers)
    assert [(each.what, text[each.start : each.end]) for each in find_secrets(text)] == []


def test_a_uuid_is_a_secret_only_where_it_is_called_a_key() -> None:
    given = str(uuid.UUID(int=0x550E8400E29B41D4A716446655440000))
    assert find_secrets(f"token {given}") == ()
    assert find_secrets(f"token: {given}") == ()
    assert [each.what for each in find_secrets(f"api key: {given}")] == ["an API key"]


def _patterns(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, value in vars(module).items():
        found = value if isinstance(value, tuple) else (value,)
        for each in found:
            pattern = getattr(each, "pattern", None)
            if isinstance(each, re.Pattern):
                yield f"{module.__name__}.{name}", each
            elif isinstance(pattern, re.Pattern):
                yield f"{module.__name__}.{name}", pattern


def _unbounded(tree: object) -> bool:
    if isinstance(tree, parser.SubPattern | list | tuple):
        items = list(tree)
        if len(items) == 3 and items[1] is parser.MAXREPEAT:
            return True
        return any(_unbounded(each) for each in items)
    return False


# Both are matched against one value, which is bounded itself.
_OF_ONE_VALUE = {"_PLACEHOLDER", "_PUBLIC"}


@pytest.mark.parametrize(
    "module", [shapes, labelled, account_numbers, instruction_signs, foreign_signs, instructions, folding]
)
def test_no_pattern_repeats_without_a_bound_so_hostile_text_costs_no_more_than_its_length(
    module: ModuleType,
) -> None:
    patterns = [
        (name, each) for name, each in _patterns(module) if name.rpartition(".")[2] not in _OF_ONE_VALUE
    ]
    assert patterns
    assert _unbounded(parser.parse("(?:ab+)?"))
    assert [name for name, each in patterns if _unbounded(parser.parse(each.pattern, each.flags))] == []
