"""`python -m onbmacf`: the command line without its script."""

from onbmacf.cli import main

main()
