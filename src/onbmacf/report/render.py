"""Render the report's dict with a template: HTML with autoescape, Markdown with its special characters escaped.

Digests identify the rows and the model of a report, and the versions that produced it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np

from onbmacf import __version__
from onbmacf._base.checks import listed
from onbmacf._base.files import write_atomically
from onbmacf._text.frames import markdown_text
from onbmacf._text.wording import visible
from onbmacf._views.templating import environment
from onbmacf.errors import ParameterError

LIBRARIES = ("numpy", "pandas", "scikit-learn")
SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


# --- fingerprint ------------------------------------------------------------------------------------------------------


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    digest = sha256()
    with Path(path).open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def table_digest(explainer: Any) -> str:
    """Return the SHA-256 of the fitted rows: column names, kinds, and encoded values in row order."""
    schema = explainer.schema_
    digest = sha256(repr([(feature.name, feature.kind, feature.levels) for feature in schema.features]).encode())
    for array in (explainer.fitted_.space.low, explainer.fitted_.space.span, explainer.Z_):
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def model_digest(explainer: Any) -> str:
    """Return the SHA-256 of the model's labels on the fitted rows; equal for models that give the same labels there."""
    digest = sha256(repr(explainer.classes_.tolist()).encode("utf-8", "backslashreplace"))
    digest.update(np.ascontiguousarray(explainer.labels_, dtype="<i8").tobytes())
    return digest.hexdigest()


def versions(libraries: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Return the versions of Python and of the libraries that the result depends on."""
    found = {"onbmacf": __version__, "python": python_version()}
    for library in libraries:
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # pragma: no cover - run from a source tree
            continue
    return found


# --- render -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Report:
    """Everything a report says, as one dict of plain values. A notebook shows it as a page.

    Attributes
    ----------
    content : dict
        Findings, tables, pictures, single cases and limits, as text and numbers.

    Examples
    --------
    >>> report = audit_report(explainer, answers, target="fine")
    >>> report.html()[:15]
    '<!DOCTYPE html>'
    >>> report.save("report.html")  # doctest: +SKIP

    """

    content: dict[str, Any]

    def html(self) -> str:
        """Return one self-contained HTML page, without scripts and without anything loaded from elsewhere."""
        return rendered("report.html", "html", self.content)

    def markdown(self) -> str:
        """Return the report as Markdown; pictures are described in words."""
        return rendered("report.md", "markdown", self.content)

    def save(self, path: Any) -> Path:
        """Write the report to a file; on an error there is no file rather than half of one.

        Parameters
        ----------
        path : str or Path
            Its suffix decides: ``.html`` or ``.htm``, ``.md`` or ``.markdown``.

        Returns
        -------
        Path
            The file written.

        """
        path = Path(path)
        kind = SUFFIXES.get(path.suffix.lower())
        if kind is None:
            raise ParameterError(f"a report is written as {listed(SUFFIXES)}, got {path.name!r}.")
        text = self.html() if kind == "html" else self.markdown()
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
        return path

    def __repr__(self) -> str:
        content = self.content
        return (
            f"<Report {content['title']!r}: {len(content['findings'])} findings, {len(content['sections'])} sections>"
        )

    def _repr_html_(self) -> str:
        return framed(self.html(), "Report")


def framed(page: str, title: str) -> str:
    """Return a page in a frame of its own, for notebooks: its style would reach the whole notebook otherwise."""
    look = "width: 100%; height: 40rem; border: 1px solid #767d85; border-radius: .6rem"
    return f'<iframe title="{escape(title)}" srcdoc="{escape(page)}" sandbox style="{look}"></iframe>'


def rendered(template: str, kind: str, content: Mapping[str, Any]) -> str:
    """Return a template filled with content, every value escaped for its kind: html or markdown."""
    text = str(_environment(kind).get_template(template).render(content))
    return text if kind == "html" else "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@cache
def _environment(kind: str) -> Any:
    try:
        return environment("onbmacf.report", visible if kind == "html" else _as_markdown)
    except ImportError as error:
        raise ImportError("reports need the extra 'report': pip install 'onbmacf[report]'.") from error


def _as_markdown(value: Any) -> Any:
    from markupsafe import Markup

    return Markup(markdown_text(str(value)))
