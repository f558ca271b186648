"""Where the HTTP server would listen, as doctor sees it: certificate and key, and the names it goes by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from server.doctor.findings import Finding
from server.doctor.listening import check_listening
from server.doctor.subject import Subject
from server.settings import load_settings

Look = Callable[[str], list[Finding]]


def write_pair(folder: Path, name: str) -> None:
    """A certificate and its key: NAME.pem and NAME.key, which is its owner's alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / f"{name}.pem").write_bytes(made.public_bytes(pem))
    file = folder / f"{name}.key"
    file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    file.chmod(0o600)


@pytest.fixture
def look(desk: Path) -> Look:
    def run(http: str) -> list[Finding]:
        desk.write_text(f"{desk.read_text()}[http]\n{http}\n")
        return list(check_listening(Subject(load_settings(config=desk, flags={}, environ={}), (), {})))

    return run


@pytest.fixture(autouse=True)
def pairs(tmp_path: Path) -> None:
    for name in ("desk", "other"):
        write_pair(tmp_path, name)


def tls(cert: str = "desk.pem", key: str = "desk.key") -> str:
    return f'tls_cert = "{cert}"\ntls_key = "{key}"'


def test_a_desk_that_says_nothing_of_http_is_told_nothing(look: Look) -> None:
    assert look("") == []


def test_a_certificate_and_its_key_are_in_order(look: Look, tmp_path: Path) -> None:
    (finding,) = look(tls())
    assert finding.mark == "ok"
    assert str(tmp_path / "desk.pem") in finding.found


@pytest.mark.parametrize(
    ("http", "key", "file"),
    [
        (tls(cert="gone.pem"), "http.tls_cert", "gone.pem"),
        (tls(key="gone.key"), "http.tls_key", "gone.key"),
        (tls(key="other.key"), "", "other.key"),
        ('tls_cert = "desk.pem"', "http.tls_key", ""),
    ],
)
def test_files_that_no_server_can_use_are_explained(look: Look, http: str, key: str, file: str) -> None:
    (finding,) = look(http)
    assert finding.mark == "FAIL"
    assert key in finding.found
    assert file in finding.found
    assert finding.next


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_that_others_can_read_is_named_with_the_cure(look: Look, tmp_path: Path, mode: int) -> None:
    key = tmp_path / "desk.key"
    key.chmod(mode)
    fine, warning = look(tls())
    assert (fine.mark, warning.mark) == ("ok", "warn")
    assert f"http.tls_key {key}" in warning.found
    assert f"{mode:04o}" in warning.found
    assert warning.next == f"chmod 600 {key}"


def test_a_server_that_others_can_reach_needs_the_names_it_goes_by(look: Look) -> None:
    (finding,) = look('host = "0.0.0.0"')
    assert finding.mark == "FAIL"
    assert "http.allowed_hosts is empty" in finding.found


@pytest.mark.parametrize("http", ['host = "0.0.0.0"\nallowed_hosts = ["desk.example"]', 'host = "localhost"'])
def test_a_server_with_its_names_or_of_this_machine_is_told_nothing(look: Look, http: str) -> None:
    assert look(http) == []
