"""The border of audit, plots and report: an object of another type is a sentence that names the argument.

Every public function is here, also one that is added later: each of its arguments is replaced by something else.
"""

from inspect import isclass, isfunction, signature

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from onbmacf import ONBMACF, Causes, Schema, audit, plots, report
from onbmacf.errors import OnbmacfError, ParameterError

TABLE = pd.DataFrame({"x": np.arange(60.0) % 7, "r": np.arange(60.0) % 5, "g": list("ab") * 30})
EXPLAINER = ONBMACF().fit(TABLE, lambda rows: (rows["x"] > 3).map({True: "yes", False: "no"}))
ANSWERS = EXPLAINER.explain(TABLE, target="yes")
CAUSED = ONBMACF().fit(TABLE, lambda rows: (rows["x"] > 3).map({True: "yes", False: "no"}), causes=Causes({"r": ["x"]}))
TREE = make_pipeline(
    make_column_transformer((OneHotEncoder(), ["g"]), remainder="passthrough"), DecisionTreeClassifier()
)
SERIES = ONBMACF().fit(TABLE[["x", "r"]], lambda rows: rows["x"] > 3).explain(TABLE[["x", "r"]].iloc[[0]])[0]
READ = ONBMACF().fit(TABLE, TREE.fit(TABLE, np.where(TABLE["x"] > 3, "yes", "no")))
COSTS = audit.recourse_costs(ANSWERS)
FLIPS = audit.individual(COSTS)
GAPS = {"g": audit.burden_gaps(ANSWERS, "g")}
ACTIONS = audit.actions(ANSWERS, EXPLAINER, k=1)

RIGHT = {
    "answers": ANSWERS, "before": ANSWERS, "after": ANSWERS, "explanation": ANSWERS[0], "counterfactual": ANSWERS[0],
    "explainer": EXPLAINER, "schema": Schema.infer(TABLE), "chosen": ACTIONS, "batches": {"a": ANSWERS}, "gaps": GAPS,
    "decisions": audit.Decisions.of(EXPLAINER, "yes"), "by": "g", "groups": TABLE["g"], "column": TABLE["g"],
    "first": TABLE["g"], "second": TABLE["g"], "values": COSTS, "selected": COSTS == 0, "truth": COSTS == 0,
    "statuses": ANSWERS.statuses, "flips": FLIPS[0], "costs": FLIPS[1], "one": FLIPS, "other": FLIPS, "budget": 1.0,
    "n_features": 3, "important": audit.change_shares(ANSWERS), "responsive": audit.responsiveness(ANSWERS, EXPLAINER),
    "changes": ANSWERS, "matrix": ANSWERS, "curve": ACTIONS.curve(), "points": ANSWERS, "x": "x", "y": "r",
    "scores": pd.DataFrame({"method": ["a"], "near": [1.0]}), "metrics": ["near"], "row": TABLE.iloc[[0]],
}  # fmt: skip
OWN = {  # where one name means two things
    **{f"audit.{name}": {"costs": COSTS} for name in ("individual", "mean_burden", "accuracy_weighted_burden")},
    "audit.social_burden": {"costs": COSTS},
    "audit.bands": {"column": TABLE["x"]},
    "audit.still_holds": {"after": EXPLAINER},
    "audit.broken_by_causes": {"explainer": CAUSED},
    "audit.cut_points": {"explainer": READ},
    "audit.group_gaps": {"groups": audit.grouped(ANSWERS, ["g"])},
    "plots.burden": {"groups": audit.burden(ANSWERS, "g")},
    "plots.image": {"counterfactual": SERIES, "shape": (1, 2)},
    "plots.series": {"counterfactual": SERIES},
}
FEW = {"report.audit_report": {"n_cases": 1}}  # each case is a picture
FUNCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (audit, plots, report)
    for name in module.__all__
    if isfunction(value := getattr(module, name))
}
EVERY = [
    (name, argument)
    for name, function in FUNCTIONS.items()
    for argument in signature(function).parameters.values()
    if argument.kind is not argument.VAR_KEYWORD
]
REQUIRED = [(name, argument.name) for name, argument in EVERY if argument.default is argument.empty]
WRONG = {
    "frame": pd.DataFrame({"q": [1]}), "none": None, "list": [3], "text": "abc", "number": 5, "dict": {"a": 3},
    "explanation": ANSWERS[0], "answers": ANSWERS, "unfitted": ONBMACF(), "model": EXPLAINER, "class": ONBMACF,
}  # fmt: skip


def arguments_of(name):
    """Return arguments with which a function works."""
    needed, own = {argument for function, argument in REQUIRED if function == name}, OWN.get(name, {})
    return {argument: {**RIGHT, **own}[argument] for argument in {*needed, *own}}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_works_with_what_it_is_for(name):
    FUNCTIONS[name](**arguments_of(name))


@pytest.mark.parametrize("name, argument", [(name, own.name) for name, own in EVERY], ids=str)
def test_an_object_of_another_type_is_no_bare_error(name, argument):
    bare = {}
    for kind, value in WRONG.items():
        try:
            FUNCTIONS[name](**{**arguments_of(name), **FEW.get(name, {}), argument: value})
        except OnbmacfError:
            pass
        except Exception as error:
            bare[kind] = repr(error)
    assert bare == {}


@pytest.mark.parametrize("name, argument", REQUIRED, ids=str)
def test_what_is_nothing_of_ours_is_refused_by_name(name, argument):
    with pytest.raises(OnbmacfError) as caught:
        FUNCTIONS[name](**{**arguments_of(name), argument: object()})
    assert any(words in str(caught.value) for words in (argument, "give ", "is not a column", "the rows are of type"))


def test_no_class_of_the_public_ones_is_forgotten():
    """Those that make something of results; the others hold what they are given."""
    makers = [own for module in (audit, plots, report) for own in vars(module).values() if isclass(own)]
    assert [own.__name__ for own in makers if hasattr(own, "of")] == ["Decisions"]
    with pytest.raises(ParameterError, match="explainer must be ONBMACF, got None"):
        audit.Decisions.of(None, "yes")


COSTS_OF_TWO = [[1.0, 2.0]]
MISUSED = {
    "another view": (lambda: audit.effectiveness([[1, 0]], "Micro"), "viewpoint must be one of 'micro', 'macro'"),
    "another shape": (lambda: audit.cheapest([[1]], COSTS_OF_TWO), r"one shape, got \(1, 1\) and \(1, 2\)"),
    "no text": (lambda: audit.mean_burden(["a"], ["b"]), r"costs must be numbers, got \['a'\]"),
    "fewer groups": (lambda: audit.mean_burden([1.0, 2.0], ["a"]), "groups has 1 values for 2 rows"),
    "fewer truths": (lambda: audit.error_rates([1, 0], [1], ["a", "a"]), "truth has 1 values for 2 rows"),
    "one of three": (lambda: audit.trade_off(FLIPS, (1, 2, 3)), "flips and costs, got 2 and 3 parts"),
    "another in a mapping": (lambda: audit.compare({"a": ANSWERS, "b": TABLE}), r"batches\['b'\] must be Explanations"),
    "another in a list": (lambda: audit.group_gaps(ANSWERS, ["g"]), r"groups\[0\] must be GroupedBy, got str"),
    "another in a tuple": (
        lambda: report.audit_report(EXPLAINER, ANSWERS, against=("b", None, ANSWERS)),
        r"against\[1\] must be ONBMACF, got None",
    ),
    "two of three": (
        lambda: report.audit_report(EXPLAINER, ANSWERS, against=("b", EXPLAINER)),
        "must have 3 parts, got 2",
    ),
    "not fitted": (lambda: plots.cover(ONBMACF(), "x", "r"), "this explainer is not fitted"),
    "no such label": (lambda: audit.Decisions.of(EXPLAINER, "Yes"), "among the model's labels 'no', 'yes', got 'Yes'"),
    "no such favour": (lambda: audit.actions(ANSWERS, EXPLAINER, target="Yes"), "among the model's labels"),
    "other columns": (lambda: plots.change_frequencies(TABLE), "changes must have the columns of audit.changes_by"),
    "no axes": (lambda: plots.front(ANSWERS, ax=3), "ax must be Axes or a Figure of matplotlib, got int"),
}


@pytest.mark.parametrize("work, pattern", MISUSED.values(), ids=MISUSED)
def test_what_is_wrong_is_said(work, pattern):
    with pytest.raises(ParameterError, match=pattern):
        work()


OTHER = ONBMACF().fit(TABLE.rename(columns={"x": "z"}), lambda rows: rows["z"] > 3)
OF_ANOTHER = {
    "actions": lambda: audit.actions(ANSWERS, OTHER, target=True),
    "still_holds": lambda: audit.still_holds(ANSWERS, OTHER),
    "responsiveness": lambda: audit.responsiveness(ANSWERS, OTHER),
    "importance": lambda: audit.importance(ANSWERS, OTHER),
    "audit_report": lambda: report.audit_report(OTHER, ANSWERS, by=["g"]),
    "released": lambda: audit.released(ANSWERS, OTHER.schema_),
    "changes_by_feature": lambda: audit.changes_by_feature(ANSWERS, OTHER.schema_),
    "findings": lambda: audit.findings(ANSWERS, OTHER.schema_),
}


@pytest.mark.parametrize("work", OF_ANOTHER.values(), ids=OF_ANOTHER)
def test_answers_about_another_table_are_told(work):
    with pytest.raises(OnbmacfError, match=r"'x'|'z'|does not describe the columns"):
        work()


@pytest.mark.parametrize("number", [np.int64(2), np.int8(2)], ids=repr)
def test_numbers_of_numpy_are_numbers(number):
    assert len(audit.single_changes(ANSWERS, number)) == len(audit.single_changes(ANSWERS, 2))
    assert audit.choices([[True, True]], np.float32(0.5)) == 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_missing_argument_is_named_with_the_function_and_all_that_it_takes(name):
    function = FUNCTIONS[name]
    required = [one for one in signature(function).parameters.values() if one.default is one.empty]
    if required:
        with pytest.raises(TypeError, match=rf"^{function.__name__}\(.*missing a required argument: '"):
            function()
    with pytest.raises(TypeError, match=rf"^{function.__name__}\("):
        function(*[None] * len(required), typo=1)
