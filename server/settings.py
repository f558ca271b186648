"""One frozen settings object: config file < environment < flags.

The tables of the file are in `sections`, which also says which of them this version reads. A relative path
in the file is relative to the file's folder, one in a variable or flag to the working directory; all are
absolute here.

`DESKBOOK_RUN` selects the run that a command reads. For a served agent it is the label of a call
(`identity.read_labels`), so it never replaces a run that the config fixes; `--run` does.
"""

from __future__ import annotations

import re
import tomllib
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from platformdirs import user_data_path
from pydantic import Field, PlainSerializer, ValidationError

from store.errors import ConfigError

from .config_faults import config_error, dotted, shown, unknown_section
from .near_miss import did_you_mean
from .permissions import resolve_profile
from .sections import AgentSettings, Inherit, Mode, Name, Section, Sections

_FILE_LIMIT: Final = 1_048_576
_VARIABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DESKBOOK_ROOT": "store.root",
        "DESKBOOK_STRATEGY": "store.strategy",
        "DESKBOOK_RUN": "run",
        "DESKBOOK_AGENT": "agent",
        "DESKBOOK_LOG_LEVEL": "log.level",
        "DESKBOOK_EXPORT": "export.enabled",
        "DESKBOOK_EMBEDDING": "embedding.provider",
    }
)
_FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "root": "store.root",
        "strategy": "store.strategy",
        "run": "run",
        "agent": "agent",
        "log_level": "log.level",
        "host": "http.host",
        "port": "http.port",
    }
)
_TWICE: Final = re.compile(r"Cannot declare (?P<keys>\(.+\)) twice \(at line (?P<line>\d+)")
_PATHS: Final = (("store", "root"), ("http", "tls_cert"), ("http", "tls_key"))
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


class ClockInForce(Section):
    """The clock of one agent after its own table was laid over the desk's."""

    mode: Mode
    run: Name | None
    inherit: Inherit


class Settings(Sections):
    """Everything a process was told, merged and checked.

    `config` is the file read (absolute) or None; `agent` the agent asked for; `run` the run that a command
    reads; `origins` names the flag or variable that set a key, for each key not left to the file.
    """

    config: Path | None = None
    agent: Name | None = None
    run: Name | None = None
    origins: Annotated[Mapping[str, str], PlainSerializer(dict)] = Field(
        default_factory=lambda: MappingProxyType({})
    )

    def clock_of(self, agent: AgentSettings) -> ClockInForce:
        """Return the agent's clock; an agent made live takes neither run nor inherit from the desk."""
        own, desk = agent.clock, self.clock
        if own.mode == "live" and desk.mode == "simulated":
            return ClockInForce(mode="live", run=own.run, inherit=own.inherit or "none")
        return ClockInForce(
            mode=own.mode or desk.mode, run=own.run or desk.run, inherit=own.inherit or desk.inherit
        )

    def set_at_launch(self, key: str) -> Literal["flag", "environment"] | None:
        """Say whether a flag or a variable set `key` (such as `store.strategy`); None: file or default."""
        origin = self.origins.get(key)
        if origin is None:
            return None
        return "flag" if origin.startswith("--") else "environment"


def load_settings(
    *, config: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]
) -> Settings:
    """Read and merge the settings; `config` is the value of --config, a flag of None was not given.

    Raises ConfigError, which names the key, flag or variable at fault.
    """
    path = _config_path(config, environ)
    tables = _read(path) if path else {}
    for section in tables.keys() - Sections.model_fields.keys():
        raise unknown_section(section)
    given = {section: dict(keys) if isinstance(keys, dict) else keys for section, keys in tables.items()}
    if path:
        _place_paths(given, path.parent)
    origins = _lay_over(given, flags, environ)
    _default_root(given)
    given["config"], given["origins"] = path, MappingProxyType(origins)
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        raise config_error(error, origins, str(path) if path else None) from None
    _check_whole(settings)
    if settings.run is None and settings.clock.mode == "simulated":
        return settings.model_copy(update={"run": settings.clock.run})
    return settings


def _config_path(flag: Path | None, environ: Mapping[str, str]) -> Path | None:
    if flag is not None:
        return absolute_path(str(flag), Path.cwd(), "--config")
    variable = environ.get("DESKBOOK_CONFIG", "")
    return absolute_path(variable, Path.cwd(), "DESKBOOK_CONFIG") if variable else None


def absolute_path(text: str, base: Path, name: str) -> Path:
    """Return `text` as an absolute path with `~`, `..` and links resolved; relative means under `base`.

    Raises ConfigError naming `name`.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError(f"{name} is {shown(text)}; allowed: the path of a file or folder.", field=name)
    try:
        return (base / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"{name} is {shown(text)}, which leads nowhere: {error}.", field=name) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except FileNotFoundError:
        hint = "Write one with `deskbook init`, or give the path of an existing one with --config."
        raise ConfigError(f"There is no config file {path}.", field="config", hint=hint) from None
    except OSError as error:
        reason = "is a folder" if path.is_dir() else f"cannot be read: {error.strerror}"
        raise ConfigError(f"The config file {path} {reason}.", field="config") from None
    if len(raw) > _FILE_LIMIT:
        raise ConfigError(f"The config file {path} is larger than {_FILE_LIMIT} bytes.", field="config")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"The config file {path} is not UTF-8 at line {line}.", field="config") from None
    return _parse(text, path)


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if twice := _TWICE.search(str(error)):
            raise _declared_twice(path, twice) from None
        reason = str(error).replace("at end of document", f"at line {len(text.splitlines())}, the last")
        raise ConfigError(f"The config file {path} is not valid TOML: {reason}.", field="config") from None
    except RecursionError:
        raise ConfigError(f"The config file {path} is nested too deeply.", field="config") from None


def _declared_twice(path: Path, found: re.Match[str]) -> ConfigError:
    section = dotted(literal_eval(found["keys"]))
    return ConfigError(
        f"The config file {path} has the section [{section}] twice, the second time at line {found['line']}.",
        field=section,
        hint="Merge the two: move the lines of the second under the first, and take its heading away.",
    )


def _place_paths(given: dict[str, Any], folder: Path) -> None:
    """Make the paths that the file names absolute; relative ones are relative to the file."""
    for section, key in _PATHS:
        table = given.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str):
            table[key] = absolute_path(table[key], folder, f"{section}.{key}")


def _default_root(given: dict[str, Any]) -> None:
    store = given.setdefault("store", {})
    if not isinstance(store, dict) or "root" in store:
        return
    root = user_data_path("deskbook")
    if not root.is_absolute():
        raise ConfigError(
            f"The platform's folder for user data is {shown(str(root))}, which is not absolute.",
            field="store.root",
            hint="Set HOME (or XDG_DATA_HOME) to an absolute path, or give --root.",
        )
    store["root"] = root.resolve()


def _lay_over(
    given: dict[str, Any], flags: Mapping[str, object], environ: Mapping[str, str]
) -> dict[str, str]:
    """Put variables, then flags, over the file's keys; return what set each key."""
    origins: dict[str, str] = {}
    for variable, key in _VARIABLES.items():
        text = environ.get(variable, "")
        if text:
            _put(given, origins, key, text, variable)
    for flag, value in flags.items():
        if flag not in _FLAGS:
            raise ConfigError(f"--{flag} is no flag of the settings{did_you_mean(flag, _FLAGS)}.", field=flag)
        if value is not None:
            _put(given, origins, _FLAGS[flag], value, f"--{flag.replace('_', '-')}")
    return origins


def _put(given: dict[str, Any], origins: dict[str, str], key: str, value: object, origin: str) -> None:
    if key == "store.root":
        value = absolute_path(str(value), Path.cwd(), origin)
    elif key == "export.enabled":
        value = _switch(str(value), origin)
    section, _, name = key.rpartition(".")
    table = given.setdefault(section, {}) if section else given
    if isinstance(table, dict):
        table[name] = value
        origins[key] = origin


def _switch(text: str, name: str) -> bool:
    word = text.strip().casefold()
    if word not in _YES | _NO:
        raise ConfigError(f"{name} is {shown(text)}; allowed: 1 or 0, true or false.", field=name)
    return word in _YES


def _check_whole(settings: Settings) -> None:
    """Check what no key shows alone: profiles, clocks, tokens and the embedding address."""
    for name in settings.profiles:
        resolve_profile(name, settings.profiles)
    for name in settings.approval.profiles:
        resolve_profile(name, settings.profiles, field=dotted(("approval", "profiles", name)))
    _check_clock(settings.clock.mode, settings.clock.run, settings.clock.inherit, ("clock",))
    tokens: dict[str, str] = {}
    for name, agent in settings.agents.items():
        where = ("agents", name)
        resolve_profile(agent.profile, settings.profiles, field=dotted((*where, "profile")))
        clock = settings.clock_of(agent)
        _check_clock(clock.mode, clock.run, clock.inherit, (*where, "clock"))
        if agent.token_env and tokens.setdefault(agent.token_env, name) != name:
            key = dotted((*where, "token_env"))
            raise ConfigError(
                f"{key} names the variable that {dotted(('agents', tokens[agent.token_env]))} has.",
                field=key,
                hint="A token stands for one agent; name a variable of its own.",
            )
    embedding = settings.embedding
    if embedding.provider == "openai" and not (embedding.url and embedding.model):
        missing = "embedding.model" if embedding.url else "embedding.url"
        raise ConfigError(f'{missing} is missing; embedding.provider = "openai" needs it.', field=missing)


def _check_clock(mode: Mode, run: str | None, inherit: Inherit, where: tuple[str, ...]) -> None:
    if mode == "simulated" or (run is None and inherit == "none"):
        return
    key = dotted((*where, "run" if run is not None else "inherit"))
    raise ConfigError(
        f"{key} is set, but the clock is live, and a live clock has no run.",
        field=key,
        hint=f'Write mode = "simulated" in [{dotted(where)}], or take the key away.',
    )
