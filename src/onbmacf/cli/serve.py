"""`onbmacf serve`: a page for people and a service for programs, about a table and a model."""

import os
from pathlib import Path
from typing import Annotated

import typer

from onbmacf.cli.explain import MODEL_OUTPUT, READING, SEARCH, SOURCE, Arguments, offers
from onbmacf.cli.terminal import say, show

PortOption = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")]
HostOption = Annotated[
    str, typer.Option(help="Address to listen on; another than this machine's needs --token or --behind-proxy.")
]
TokenOption = Annotated[
    str, typer.Option(envvar="ONBMACF_TOKEN", help="What requests must carry; drawn at random by default.")
]
ProxyOption = Annotated[
    bool, typer.Option("--behind-proxy", help="A proxy in front encrypts: cookies are sent over HTTPS only.")
]
AllowOption = Annotated[
    tuple[str, ...], typer.Option(help="Names under which a proxy asks, beside this machine's own.")
]
WorkersOption = Annotated[
    int, typer.Option(min=0, help="Processes that answer and share the map; 0 answers in this one.")
]
FolderOption = Annotated[
    Path | None, typer.Option(help="Where audits are kept while they run; a folder of yours by default.")
]
TimeoutOption = Annotated[float, typer.Option(min=0.1, help="Seconds until a request is given up.")]
WaitingOption = Annotated[int, typer.Option(min=1, help="Requests that may wait at a time.")]
OpenOption = Annotated[bool, typer.Option("--open/--no-open", help="Open the link in a browser, if there is one.")]
LogOption = Annotated[bool, typer.Option("--log", help="Write a line per request to stderr, without what is in it.")]
ADDRESS = ("port", "host", "open_", "token", "behind_proxy", "allow_host")
LOAD = ("workers", "folder", "timeout", "waiting", "log")


@offers(*SOURCE, *ADDRESS, *LOAD, "target", "n", "immutable", "rules", *READING, *SEARCH, "map", *MODEL_OUTPUT)
def serve(
    arguments: Arguments,
    port: PortOption = 8017,
    host: HostOption = "127.0.0.1",
    open_: OpenOption = True,
    token: TokenOption = "",
    behind_proxy: ProxyOption = False,
    allow_host: AllowOption = (),
    workers: WorkersOption = 0,
    folder: FolderOption = None,
    timeout: TimeoutOption = 60.0,
    waiting: WaitingOption = 64,
    log: LogOption = False,
) -> None:
    """Serve pages on which people see plans for single rows, and the same as JSON for programs. Ends with Ctrl-C.

    \b
    onbmacf serve
    onbmacf serve people.csv --target-column income --immutable sex,age
    onbmacf serve people.csv --model income.skops --target-column income --map people.onb --port 0 --no-open
    """
    from onbmacf._views.plans import Source
    from onbmacf.cli.preparation import prepare
    from onbmacf.web.server import run_server
    from onbmacf.web.settings import Limits, Settings

    limits = Limits(timeout=timeout, max_waiting=waiting)
    settings = Settings(host, port, token, behind_proxy, allow_host, workers, folder, log, limits)
    setup = prepare(arguments)
    source = Source(
        setup.explainer,
        setup.table,
        setup.target,
        Path(setup.source).name,
        setup.model_name,
        setup.files,
        setup.notes,
    )
    # Whoever set the variable knows what is in it; what is printed here may be kept in a log.
    is_secret = bool(token) and token == os.environ.get("ONBMACF_TOKEN")
    if is_secret:
        say("Open the address below in a browser on this machine, with ?token= and ONBMACF_TOKEN's value behind it.")
    else:
        say("Open the link below in a browser on this machine.")
    say("Ctrl-C ends the service.")
    run_server(
        source, settings, open_browser=open_, tell=lambda link: show(link.partition("?")[0] if is_secret else link)
    )
    say("The service has ended.")
