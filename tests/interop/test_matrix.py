"""The README's matrix of clients is the one that `make interop` prints when every client passes."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- clients: as make interop prints them -->\n", "<!-- end of clients -->\n"


def test_the_readme_shows_the_clients_versions_and_protocols_of_the_table(promised_matrix: str) -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count(BEGIN) == 1
    shown = text.split(BEGIN)[1].split(END)[0]
    assert shown.strip() == promised_matrix.strip()
