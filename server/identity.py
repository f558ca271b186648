"""Who is calling, from the launch or the bearer token alone, and what the client program said of the call.

Labels never change who is calling. They come in `_meta`, in headers of an HTTP request, or in the environment
of a process that serves one call, and are read and checked here before anything else sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from store.clock import parse_instant
from store.errors import ClockError, ConfigError, InvalidInput
from store.names import name_fault

from .config_faults import dotted, shown
from .near_miss import did_you_mean
from .permissions import Profile, resolve_profile
from .section_values import NAME
from .sections import AgentSettings, Inherit, Mode
from .settings import Settings

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
LOCAL_AGENT: Final = "local"
LOCAL_PROFILE: Final = "solo"

LabelName = Literal["now", "run", "model_call_id", "session_id"]
_LABELS: Final[tuple[tuple[LabelName, str, str, str], ...]] = (
    ("now", "deskbook/now", "Deskbook-Now", "DESKBOOK_NOW"),
    ("run", "deskbook/run", "Deskbook-Run", "DESKBOOK_RUN"),
    ("model_call_id", "deskbook/model_call_id", "Deskbook-Model-Call", "DESKBOOK_MODEL_CALL"),
    ("session_id", "deskbook/session_id", "Deskbook-Session", "DESKBOOK_SESSION"),
)

LABEL_HEADERS: Final = tuple(header for _, _, header, _ in _LABELS)
"""The headers of an HTTP request that carry labels."""

LABEL_ORIGINS: Final = ("deskbook/", "Deskbook-", "DESKBOOK_")
"""How the name of a label begins, wherever it was sent."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One agent as the launch or its token fixed it; `run` is None unless the config or --run fixes one."""

    agent: str
    profile: Profile
    strategy: str
    read_only: bool
    mode: Mode
    run: str | None
    inherit: Inherit


@dataclass(frozen=True, slots=True)
class CallLabels:
    """What came with one call, as sent; `now_from` and `run_from` name where, for error messages."""

    now: str | None = None
    run: str | None = None
    model_call_id: str | None = None
    session_id: str | None = None
    now_from: str = "deskbook/now"
    run_from: str = "deskbook/run"


@dataclass(frozen=True, slots=True)
class CallClock:
    """The run of a call and its time in microseconds since the epoch, UTC; both None for a live call.

    A simulated call without a time takes the one its run was advanced to; the store refuses it where there is none.
    """

    run: str | None
    now_us: int | None


def launch_identity(settings: Settings, agent: str | None = None) -> Identity:
    """Return the identity that this process serves, by default that of `settings.agent`.

    Raises ConfigError for an agent that the config does not name, for no agent where several are named,
    and for --run on a live clock.
    """
    wanted = agent if agent is not None else settings.agent
    if settings.config is None:
        return _identity(settings, LOCAL_AGENT, _local(wanted))
    name = _configured_name(settings, wanted)
    return _identity(settings, name, settings.agents[name])


def read_labels(
    meta: Mapping[str, object] | None, environ: Mapping[str, str], headers: Mapping[str, str] = NOTHING
) -> CallLabels:
    """Read what a client program sent with a call; `_meta` wins over headers, and those over the environment.

    `headers` are named as `LABEL_HEADERS` spells them. A null in `_meta`, an empty header and an empty variable
    count as not sent. Other keys are left alone. Raises InvalidInput naming the key for anything but text of 1
    to 128 characters without control characters.
    """
    found: dict[LabelName, str] = {}
    origins: dict[LabelName, str] = {}
    for label, key, header, variable in _LABELS:
        sent: object = meta.get(key) if meta else None
        origin = key
        if sent is None:
            sent, origin = headers.get(header) or None, header
        if sent is None:
            sent, origin = environ.get(variable) or None, variable
        if sent is not None:
            found[label], origins[label] = _label(sent, origin), origin
    return CallLabels(
        **found,
        now_from=origins.get("now", "deskbook/now"),
        run_from=origins.get("run", "deskbook/run"),
    )


def narrowed(identity: Identity, *, read_only: bool) -> Identity:
    """The identity as a token narrows it; nothing widens one."""
    if not read_only or identity.read_only:
        return identity
    return replace(identity, profile=replace(identity.profile, read_only=True), read_only=True)


def resolve_clock(identity: Identity, labels: CallLabels) -> CallClock:
    """Return the run and time of a call under the identity's mode (design, invariant 8).

    Raises ClockError when a live identity is sent either, and when a simulated one has no run or another run
    than the one fixed for it; InvalidInput for a time that cannot be read.
    """
    if identity.mode == "live":
        _refuse_on_live(identity, labels)
        return CallClock(run=None, now_us=None)
    run = _run(identity, labels)
    now = None if labels.now is None else parse_instant(labels.now, field=labels.now_from)
    return CallClock(run=run, now_us=now)


def _local(wanted: str | None) -> AgentSettings:
    if wanted not in {None, LOCAL_AGENT}:
        raise ConfigError(
            f'Agent {shown(wanted)} is not known: without a config file the only agent is "{LOCAL_AGENT}".',
            field="agent",
            hint="Write a config with `deskbook init` and start with --config FILE --agent NAME, "
            "or leave --agent away.",
        )
    return AgentSettings(profile=LOCAL_PROFILE)


def _configured_name(settings: Settings, wanted: str | None) -> str:
    names = list(settings.agents)
    listed = ", ".join(f'"{name}"' for name in names)
    if not names:
        raise ConfigError(
            f"The config {settings.config} names no agent, so none can start.",
            field="agents",
            hint='Add a table [agents.NAME] with a profile, such as profile = "trader".',
        )
    if wanted is None:
        if len(names) > 1:
            raise ConfigError(
                f"The config {settings.config} names several agents: {listed}.",
                field="agent",
                hint="Say which one this process serves: --agent NAME (or DESKBOOK_AGENT).",
            )
        return names[0]
    if wanted not in settings.agents:
        near = did_you_mean(wanted, names)
        raise ConfigError(
            f"The config {settings.config} names no agent {shown(wanted)}{near}; it names: {listed}.",
            field="agent",
            hint=f"Start one of them, or add a table [{dotted(('agents', wanted))}].",
        )
    return wanted


def _identity(settings: Settings, name: str, agent: AgentSettings) -> Identity:
    profile = resolve_profile(
        agent.profile,
        settings.profiles,
        read_only=agent.read_only,
        field=dotted(("agents", name, "profile")),
    )
    clock = settings.clock_of(agent)
    strategy_given = settings.set_at_launch("store.strategy")
    run_given = settings.set_at_launch("run") == "flag"
    if run_given and clock.mode == "live":
        raise ConfigError(
            f'Agent "{name}" is live, and a live agent has no run, so --run is refused.',
            field="--run",
            hint='Leave --run away, or write mode = "simulated" in [clock] or in the agent\'s own clock.',
        )
    return Identity(
        agent=name,
        profile=profile,
        strategy=settings.store.strategy if strategy_given else agent.strategy or settings.store.strategy,
        read_only=profile.read_only,
        mode=clock.mode,
        run=settings.run if run_given else clock.run,
        inherit=clock.inherit,
    )


def _label(sent: object, origin: str) -> str:
    fault = name_fault(sent) if isinstance(sent, str) else "is not text"
    if fault is None and isinstance(sent, str):
        return sent
    raise InvalidInput(f"{origin} {fault}.", field=origin, hint=f"Allowed: {NAME}.")


def _refuse_on_live(identity: Identity, labels: CallLabels) -> None:
    for sent, origin in ((labels.now, labels.now_from), (labels.run, labels.run_from)):
        if sent is not None:
            raise ClockError(
                f'Agent "{identity.agent}" is live: its clock is the wall clock, so {origin} is refused.',
                field=origin,
                hint='Send the call without it; for a backtest, start an agent with mode = "simulated".',
            )


def _run(identity: Identity, labels: CallLabels) -> str:
    run = labels.run or identity.run
    if run is None:
        raise ClockError(
            f'Agent "{identity.agent}" lives in a simulated run, and neither call nor config names it.',
            field="deskbook/run",
            hint="Send `_meta` key `deskbook/run` (or header Deskbook-Run, or DESKBOOK_RUN), or fix it: "
            "[clock] run, or --run.",
        )
    if identity.run is not None and run != identity.run:
        raise ClockError(
            f'{labels.run_from} is not the run "{identity.run}" that is fixed for agent "{identity.agent}".',
            field=labels.run_from,
            hint="Leave it out or send the same run; each run has a ledger of its own.",
        )
    return run
