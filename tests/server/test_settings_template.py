"""The commented config that `deskbook init` writes is the example in configs/, and is whole and valid."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from server.commands.setting_up import init
from server.identity import launch_identity
from server.permissions import Action
from server.sections import AgentClock, AgentSettings, ProfileSettings, Sections
from server.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def template() -> str:
    return files("server").joinpath("desk_template.toml").read_text(encoding="utf-8")


def _uncommented(template: str) -> str:
    return re.sub(r'(?m)^# (?=(?:[a-z_]+|"[^"]+") = |\[[a-z_.]+\]$)', "", template)


def test_the_example_config_is_what_init_writes_but_for_the_root_of_this_machine(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / 'da"ta \\ \x7f'
    monkeypatch.setenv("DESKBOOK_ROOT", str(place))
    init(tmp_path / "desk.toml")
    written = (tmp_path / "desk.toml").read_text(encoding="utf-8").splitlines()
    example = (ROOT / "configs" / "desk.toml").read_text(encoding="utf-8")
    assert example == template
    (root,) = [line for line in written if line.startswith("root = ")]
    assert written[written.index(root) - 1] == '# root = "~/deskbook"'
    assert tomllib.loads(root) == {"root": str(place)}
    written.remove(root)
    assert written == example.splitlines()


def test_what_init_writes_does_not_move_with_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DESKBOOK_ROOT", raising=False)
    path = tmp_path / "desk.toml"
    roots = []
    for name in ("shell", "host"):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / name))
        if name == "shell":
            init(path)
        roots.append(load_settings(config=path, flags={}, environ={}).store.root)
    assert roots[0] == roots[1]


def test_init_names_the_folders_that_it_makes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    init(tmp_path / "new" / "folder" / "desk.toml")
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == [f"made folder {tmp_path / 'new'}", f"made folder {tmp_path / 'new' / 'folder'}"]
    init(tmp_path / "new" / "other.toml")
    assert "made folder" not in capsys.readouterr().out


def test_the_template_shows_a_harness_that_waits_for_its_program(template: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_text(
        _uncommented(template).replace('mode = "live"', 'mode = "simulated"', 1), encoding="utf-8"
    )
    settings = load_settings(config=path, flags={}, environ={})
    assert launch_identity(settings, "harness").profile.name == "harness"


def test_the_template_starts_a_researcher_and_a_trader(template: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    path.write_text(template, encoding="utf-8")
    settings = load_settings(config=path, flags={}, environ={})
    assert list(settings.agents) == ["researcher", "trader"]
    assert [launch_identity(settings, name).profile.name for name in settings.agents] == list(settings.agents)
    assert list(settings.profiles) == ["risk_desk"]


def test_the_template_changes_no_default_but_names_agents_and_a_profile(
    template: str, tmp_path: Path
) -> None:
    path = tmp_path / "desk.toml"
    path.write_text(template, encoding="utf-8")
    left_out = {"config", "agents", "profiles"}
    written = load_settings(config=path, flags={}, environ={}).model_dump(exclude=left_out)
    assert written == load_settings(config=None, flags={}, environ={}).model_dump(exclude=left_out)


def test_the_template_stays_valid_with_every_comment_taken_away(template: str, tmp_path: Path) -> None:
    path = tmp_path / "desk.toml"
    text = _uncommented(template).replace('mode = "live"', 'mode = "simulated"', 1)
    path.write_text(text, encoding="utf-8")
    settings = load_settings(config=path, flags={}, environ={})
    assert launch_identity(settings, "trader").run == "backtest-2026-03"


def test_the_template_shows_every_key_of_every_section(template: str) -> None:
    tables = tomllib.loads(_uncommented(template))
    for name, field in Sections.model_fields.items():
        assert name in tables, name
        model = field.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            assert tables[name].keys() == model.model_fields.keys(), name
    assert tables["agents"]["trader"].keys() == AgentSettings.model_fields.keys()
    assert tables["agents"]["trader"]["clock"].keys() == AgentClock.model_fields.keys()
    assert tables["profiles"]["risk_desk"].keys() == ProfileSettings.model_fields.keys()
    assert AgentSettings in get_args(Sections.model_fields["agents"].annotation)


def test_every_section_of_the_template_has_a_comment(template: str) -> None:
    sections = re.split(r"(?m)^\[", template)[1:]
    above = re.split(r"(?m)^\[.*\]$", template)
    for index, section in enumerate(sections):
        comments = [line for line in (above[index] + section).splitlines() if line.startswith("# ")]
        assert comments, section.partition("]")[0]


def test_the_template_names_every_action(template: str) -> None:
    listed = re.search(r"Actions: ([a-z_,\s#]+)\.", template)
    assert listed
    assert re.findall(r"[a-z_]+", listed[1]) == [action.value for action in Action]
