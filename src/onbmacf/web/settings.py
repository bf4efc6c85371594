"""How the service runs, as frozen data: where it listens, who may ask, and how much of everything."""

import secrets
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from onbmacf._base.checks import check_count, did_you_mean, listed
from onbmacf.errors import ParameterError

LOCAL = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16  # characters


@dataclass(frozen=True)
class Limits:
    """How much one request, one client and the whole service may take.

    Attributes
    ----------
    max_body : int
        Bytes of a request's body.
    max_rows : int
        Rows of one request.
    max_waiting : int
        Requests that may wait for an answer at a time; one more gets 503 with Retry-After.
    timeout : float
        Seconds until a request, or one part of a stream, is given up with 503; a body that takes longer to arrive is
        given up with 408.
    max_plans : int
        Counterfactuals per row.
    max_bodies : int
        Bytes of all bodies that are held at a time; a request beyond them gets 503 with Retry-After.
    head_timeout : float
        Seconds until the head of a request must be there, and for which a client may read nothing of its answer; the
        connection is closed then.
    max_connections : int
        Open connections; one more takes the place of the oldest without a request, or gets 503.
    max_per_client : int
        The same for one client's address; does not count behind a proxy.

    """

    max_body: int = 8 << 20
    max_rows: int = 10_000
    max_waiting: int = 64
    timeout: float = 60.0
    max_plans: int = 20
    max_bodies: int = 64 << 20
    head_timeout: float = 15.0
    max_connections: int = 200
    max_per_client: int = 100

    def __post_init__(self) -> None:
        for name in (entry.name for entry in fields(self) if entry.type is int):
            check_count(name, getattr(self, name))
        for name in ("timeout", "head_timeout"):
            if not getattr(self, name) > 0:
                raise ParameterError(f"{name} must be above 0, got {getattr(self, name)!r}.")
        if self.max_bodies < self.max_body:
            raise ParameterError(f"max_bodies must be at least max_body, {self.max_body}, got {self.max_bodies}.")


@dataclass(frozen=True)
class Settings:
    """Where the service listens, who may ask, and its limits.

    Attributes
    ----------
    host : str
        Address to listen on. Another than this machine's own needs ``token`` or ``behind_proxy``.
    port : int
        Port to listen on; 0 takes a free one.
    token : str
        What a request must carry; drawn at random where empty.
    behind_proxy : bool
        Whether a proxy in front encrypts and names the host: cookies are then sent over HTTPS only.
    allowed_hosts : tuple of str
        Names under which the service may be asked, beside those of this machine and ``host``.
    workers : int
        Processes that answer, each with the map memory-mapped; 0 answers in a thread of this process.
    folder : Path or None
        Where audits are kept while they run; by default a folder of the user's for this table and model.
    log : bool
        Whether to write a line per request: its kind, status and time, never what is in it.
    limits : Limits
        How much of everything.

    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    behind_proxy: bool = False
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 0
    folder: Path | None = None
    log: bool = False
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.is_local and not (self.token or self.behind_proxy):
            raise ParameterError(
                f"host {self.host} can be reached from other machines: give a token of your own (token=...), or say "
                "that a proxy guards it (behind_proxy=True)."
            )
        if self.token and len(self.token) < SHORTEST_TOKEN:
            raise ParameterError(f"token must have at least {SHORTEST_TOKEN} characters, got {len(self.token)}.")
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"port must be from 0 to 65535, got {self.port!r}.")
        check_count("workers", self.workers, least=0)
        object.__setattr__(self, "token", self.token or secrets.token_urlsafe(24))
        object.__setattr__(self, "allowed_hosts", tuple(self.allowed_hosts))
        object.__setattr__(self, "folder", None if self.folder is None else Path(self.folder))

    @classmethod
    def of(cls, **settings: Any) -> "Settings":
        """Return settings from keywords; those of Limits may be among them."""
        limit_names = {entry.name for entry in fields(Limits)}
        known = sorted({entry.name for entry in fields(cls)} | limit_names)
        for name in settings:
            if name not in known:
                raise ParameterError(f"unknown setting {name!r}.{did_you_mean(name, known)} Allowed: {listed(known)}.")
        limits = {name: settings.pop(name) for name in sorted(limit_names & set(settings))}
        return cls(**(settings | {"limits": Limits(**limits)} if limits else settings))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.host in LOCAL

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the service may be asked, in lower case, without port."""
        named = () if self.host in ("0.0.0.0", "::") else (self.host,)
        return frozenset(name.lower() for name in (*LOCAL, *named, *self.allowed_hosts))
