"""`onbmacf serve`: pages for people and a JSON service for programs, about one fitted explainer (extra `web`).

    explainer, table  ->  Source  ->  create_app  ->  run_server

Pages and service make the same library calls and give the same answers; nothing is computed here that the library does
not compute. How it is kept safe: docs/decisions/0073-serve.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onbmacf.web.settings import Settings

__all__ = ["serve"]


def serve(
    explainer: Any,
    table: Any = None,
    *,
    target: Any = None,
    name: str = "a table in memory",
    model_name: str = "",
    open_browser: bool = True,
    settings: "Settings | None" = None,
    **fields: Any,
) -> None:
    """Serve pages and a JSON service for a fitted explainer, until Ctrl-C.

    The link, with its token, is printed on one line. Only this machine can reach it unless ``host`` says otherwise.

    Parameters
    ----------
    explainer : ONBMACF
        Fitted.
    table : DataFrame, optional
        The rows that people can pick, with the columns of the fitted table; by default the fitted rows.
    target : label or labels, optional
        What the model should say, where a request does not name it; any other label by default.
    name, model_name : str
        What to call the table and the model.
    open_browser : bool, default True
        Open the link in a browser, if there is one.
    settings : Settings, optional
        Where to listen, who may ask, and limits, instead of the following.
    **fields
        Those of `onbmacf.web.settings.Settings`: ``host``, ``port``, ``token``, ``behind_proxy``, ``allowed_hosts``,
        ``workers``, ``folder``, ``log``, and those of its ``limits``.

    Examples
    --------
    >>> import onbmacf
    >>> onbmacf.serve(explainer, table, target="healthy")  # doctest: +SKIP
    http://127.0.0.1:8017/?token=...

    """
    from onbmacf._base.checks import listed
    from onbmacf._views.plans import Source
    from onbmacf.errors import ParameterError
    from onbmacf.web.server import run_server
    from onbmacf.web.settings import Settings

    if settings is not None and fields:
        raise ParameterError(f"give settings or {listed(list(fields))}: one sets what the other would.")
    settings = Settings.of(**fields) if settings is None else settings
    if not isinstance(settings, Settings):
        raise ParameterError(f"settings must be Settings, got {type(settings).__name__}.")
    source = Source.of(explainer, table, target=target, name=name, model_name=model_name)
    run_server(source, settings, open_browser=open_browser)
