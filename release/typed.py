"""What a user may write, fully typed: checked by mypy and pyright against the installed package, and run."""

from pathlib import Path

import pandas as pd

from onbmacf import ONBMACF, Counterfactual, Explanations, Rule, Rules, Schema, Status
from onbmacf.datasets import heart_network, load_heart
from onbmacf.errors import OnbmacfError


def explained(table: pd.DataFrame, labels: "pd.Series[str]") -> Explanations:
    """Return the answers to three people."""
    rules = Rules({"tobacco": Rule(direction="down"), "ldl": Rule(low=2, high=6, step=0.5)}, max_changes=2)
    schema = Schema.infer(table, immutable=["age"], rules=rules)
    explainer: ONBMACF = ONBMACF(n_counterfactuals=2).fit(table, heart_network().fit(table, labels), schema=schema)
    return explainer.explain(table.head(3), target="healthy")


def nearest(answers: Explanations) -> list[Counterfactual]:
    """Return the first counterfactual of each row that has one."""
    return [answer.counterfactuals[0] for answer in answers if answer.status is Status.FOUND]


def refused() -> str:
    """Return what the package says of a wrong argument."""
    try:
        return repr(Rules(max_changes=0))
    except OnbmacfError as error:
        return str(error)


def main() -> None:
    """Write the answers, and read one of them."""
    table, chd = load_heart()
    answers = explained(table, chd.map({0: "healthy", 1: "at risk"}))
    frame: pd.DataFrame = answers.to_frame()
    Path("answers.json").write_text(answers.to_json(), encoding="utf-8")
    names: tuple[object, ...] = tuple(name for found in nearest(answers) for name in found.changed)
    sentences: list[str] = answers.sentences()
    print(len(frame), names, sentences[0], refused(), sep="\n")


if __name__ == "__main__":
    main()
