"""The command line: the script `onbmacf`, and `python -m onbmacf`."""


def main() -> None:
    """Run a command; without the extra `cli`, say so."""
    try:
        from onbmacf.cli import main as run
    except ImportError as error:
        raise SystemExit(f"onbmacf: {error}") from error
    run()


if __name__ == "__main__":
    main()
