"""`onbmacf notice`: a table, a model and one row in, one page for one person out."""

from pathlib import Path
from typing import Annotated

import typer

from onbmacf.cli.options import ASKING, READING, SEARCH, SOURCE, offers
from onbmacf.cli.request import Request
from onbmacf.cli.terminal import say, show

OutOption = Annotated[Path | None, typer.Option(help="Notice to write: .html, .md or .json; by default it is printed.")]
LanguageOption = Annotated[str, typer.Option(help="Language of the notice: en or es.")]
ContactOption = Annotated[str, typer.Option(help="Whom the person may write to or call.")]
ReviewOption = Annotated[str, typer.Option(help="How the person can have the decision looked at again.")]
DateOption = Annotated[str, typer.Option(help="Date of the notice; today by default.")]
NOTICE = ("out", "language", "contact", "review", "date")


WANTED = ("rows", "ids", "rows_file", "target", "immutable", "vary", "rules")


@offers(*SOURCE, *WANTED, *NOTICE, *READING, *SEARCH, "map", *ASKING)
def notice(
    request: Request,
    out: OutOption = None,
    language: LanguageOption = "en",
    contact: ContactOption = "",
    review: ReviewOption = "",
    date: DateOption = "",
) -> None:
    """Write a notice about one decision: main reasons, what would change it, what would not.

    \b
    onbmacf notice --rows 3
    onbmacf notice people.csv --target-column income --rows 17 --target high --out notice.html
    onbmacf notice people.csv --model income.skops --target-column income --rows 17 --language es --out notice.md

    It is about one row, named with --rows, --ids or --rows-file.
    """
    _check(request, out, language)
    from onbmacf.cli.job import prepare
    from onbmacf.cli.rows import chosen_rows
    from onbmacf.report import notice as write

    job = prepare(request)
    row = chosen_rows(job, request, None)
    page = write(
        job.explainer, row, target=job.target, language=language, contact=contact, review=review, date=date or None
    )
    if out is None:
        show(page.markdown())
    else:
        say(f"Written to {page.save(out)}.")


def _check(request: Request, out: Path | None, language: str) -> None:
    """Raise before any work where the notice could not be written."""
    from onbmacf._base.checks import listed
    from onbmacf.errors import ParameterError
    from onbmacf.report.notice import KINDS, catalogue

    catalogue(language)
    if out is not None and out.suffix.lower() not in KINDS:
        raise ParameterError(f"--out must end in {listed(KINDS)}, got {out.name!r}.")
    if not (request.rows or request.ids or request.rows_file):
        raise ParameterError("a notice is about one row: name it with --rows, --ids or --rows-file.")
