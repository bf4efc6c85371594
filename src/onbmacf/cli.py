"""The command line: words and files in, one library call, text and files out. No heavy import until a command runs."""

import sys

try:
    import typer
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("the command line needs the extra 'cli': pip install 'onbmacf[cli]'") from error

from onbmacf import __version__
from onbmacf.bench.cli import app as bench_app
from onbmacf.errors import OnbmacfError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(bench_app, name="bench")


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Counterfactuals and semifactuals for any classifier, from a ball cover of the training rows (ONB-MACF)."""
    if show:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    people: int = typer.Option(5, "--people", min=1, help="How many people at risk to explain."),
    n: int = typer.Option(1, "--n", min=1, help="Counterfactuals per person."),
) -> None:
    """Explain a heart-disease network on the embedded data.

    Example: onbmacf demo --people 3 --n 2
    """
    from onbmacf.demo import demo_text, run_demo

    typer.echo(demo_text(run_demo(people, n)))


def main() -> None:
    """Run the command line; an error of ours becomes one line and exit code 2."""
    try:
        app()
    except OnbmacfError as error:
        typer.echo(f"onbmacf: {error}", err=True)
        sys.exit(2)
