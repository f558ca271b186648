"""What an order may say in public: ordinary trading sentences pass, account data and secrets are left out."""

from __future__ import annotations

from typing import Any

import pytest

SAFE = (
    "RSI 70, 20-day high 187.30, target 210 by 2026-09-30",
    "Debt-to-equity 0.4 and falling, return on equity 18%",
    "Balance sheet: net cash of 3.2bn, cash $12bn on the books",
    "Asia semiconductors rally on export orders",
    "The token is oversold, RSI 22; secret sauce: none",
    "Bought 10@187.30 on the breakout",
    "As of 2026-09-30 16:00 the spread was 1.2%, target 210 2026-10-30",
    "1% account risk, stop 180.50",
    "Equity risk premium 4.1%, equity index up 2%",
    "AAPL250117C00150000 sold at 3.20, SPXW 250117C05000000 bought",
    "20-day-moving-average-crossover above the 50-day",
    "EPS 1.52 vs 1.43, revenue 94,930 million, P/E 28.4, market cap 3.4T",
    "Volume 1,250,000,000 shares; BTC/USD 64,000 support; ES=F 5,120.25",
    "Q3FY26 margin 24.5%, 10-Q of 2026-05-02, gap up at 2026-03-02T14:30:00Z",
    "Résumé: naïve 😀 trade, 目标价 210, 1\u00a0000 €",
)
UNSAFE = {
    "Account 12345678 has room": "an account number",
    "acct #U1234567": "an account number",
    "routing 021000021": "a routing number",
    "buying power 40000": "account data",
    "portfolio value is $125,000": "account data",
    "cash balance 10234.55": "account data",
    "account equity of 52,300": "account data",
    "equity $52,300": "account data",
    "my account has $40k": "account data",
    "use sk-abcdefghijklmnop123": "an API key",
    "AKIAABCDEFGHIJKLMNOP": "an API key",
    "ghp_abcdefghijklmnopqrst": "an access token",
    "api_key=foo": "a secret",
    "password: hunter2": "a password",
    "token: abc123def": "a secret",
    "Bearer abcdef123456": "an access token",
    "ask ann@example.com": "an e-mail address",
    "DE89 3704 0044 0532 0130 00": "an IBAN",
    "550e8400-e29b-41d4-a716-446655440000": "a UUID",
    "see ths_0c4m2k8v7zq1d": "a memory id",
    "see ev_0c4m2k8v7zq1d": "an id of this ledger",
    "order 123456789012": "a long number",
    "card 4111 1111 1111 1111": "a card number",
    "-----BEGIN RSA PRIVATE KEY": "a private key",
    "aGVsbG8gd29ybGQ1MjM0NTY3ODkwYWJj": "a long random text",
    "red \x1b[31m alert": "control characters",
    "ab\u202ecd": "control characters",
}


@pytest.mark.parametrize("text", SAFE)
def test_an_ordinary_trading_sentence_stands(floor: Any, text: str) -> None:
    written = floor.submit(public_reason=f"  {text} ")
    assert written.warnings == ()
    assert floor.told("order_action.recorded")[0]["public_reason"] == text


@pytest.mark.parametrize(("text", "why"), UNSAFE.items())
def test_an_unsafe_one_is_left_out_said_why_and_blocks_nothing(floor: Any, text: str, why: str) -> None:
    written = floor.submit(public_reason=text)
    warning, *_ = written.warnings
    assert warning.startswith("public_reason was left out: it")
    assert why in warning
    assert written.status == "intent"
    assert "public_reason" not in floor.told("order_action.recorded")[0]
    assert not any(text in entry.content for entry in floor.seat.entries())


@pytest.mark.parametrize(("text", "stands"), [("a " * 139 + "ab", True), ("é" * 140, True), ("a " * 140 + "b", False),
                                              ("é" * 141, False)])  # fmt: skip
def test_280_bytes_stand_and_281_do_not(floor: Any, text: str, stands: bool) -> None:
    written = floor.submit(public_reason=text)
    assert (written.warnings == ()) == stands
    assert ("public_reason" in floor.told("order_action.recorded")[0]) == stands


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_no_public_reason_is_nothing_to_warn_of(floor: Any, text: str | None) -> None:
    assert floor.submit(public_reason=text).warnings == ()


def test_what_screens_does_not_slow_an_order_down_on_hostile_text(floor: Any) -> None:
    for text in (
        "a-" * 140,
        "9 " * 140,
        "account " * 35,
        "a.b@" * 70,
        "cash " * 56,
        "A1-" * 93,
        "\ud7ff" * 93,
    ):
        assert floor.submit(public_reason=text, quantity="1").status == "intent"
