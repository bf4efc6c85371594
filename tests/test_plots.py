"""What the pictures draw, not their pixels."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from onbmacf import ONBMACF, Schema, audit, plots
from onbmacf.errors import ParameterError


@pytest.fixture(scope="module")
def table(heart):
    return heart[["tobacco", "ldl", "famhist", "age"]]


def model(rows):
    return np.where(rows["tobacco"] + rows["ldl"] + 2 * (rows["famhist"] == "Present") > 10, "risk", "fine")


@pytest.fixture(scope="module")
def explainer(table):
    return ONBMACF(2, strategy="paper").fit(table, model, schema=Schema.infer(table, immutable=["age"]))


@pytest.fixture(scope="module")
def answers(explainer, table):
    return explainer.explain(table.head(60))


def texts(ax):
    return [text.get_text() for text in ax.texts]


def tick_names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend_names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_cover_draws_every_row_once_and_the_balls_asked_for(explainer, table):
    ax = plots.cover(explainer, "tobacco", "ldl", largest=7)
    drawn = np.concatenate([points.get_offsets() for points in ax.collections])
    assert sorted(map(tuple, drawn.round(6))) == sorted(map(tuple, table[["tobacco", "ldl"]].to_numpy().round(6)))
    assert len(ax.patches) == 14  # an area and an outline each
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("tobacco", "ldl")
    assert sum(int(said.split(": ")[1].split()[0]) for said in legend_names(ax)) == len(table)
    everything = plots.cover(explainer, "tobacco", "ldl", largest=None)
    assert len(everything.patches) == 2 * len(explainer.cover_)


@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "chebyshev"])
def test_a_balls_shadow_has_its_radius_around_its_centre_in_the_features_own_units(table, metric):
    two = table[["tobacco", "ldl"]]
    fitted = ONBMACF(metric=metric).fit(two, lambda rows: (rows["ldl"] > 5).astype(int))
    ax = plots.cover(fitted, "tobacco", "ldl", largest=1)
    corners = ax.patches[0].get_xy()
    ball = int(np.bincount(fitted.cover_.owner).argmax())
    center = two.iloc[fitted.cover_.centers[ball]].to_numpy()
    reach = np.abs(corners - center).max(axis=0) / fitted.fitted_.space.span
    assert reach == pytest.approx(np.full(2, fitted.cover_.radii[ball]), rel=2e-3)


def test_labels_are_told_apart_without_colour(explainer):
    ax = plots.cover(explainer, "tobacco", "ldl")
    markers = {points.get_paths()[0].vertices.shape for points in ax.collections}
    assert len(markers) == len(explainer.classes_)
    assert len({patch.get_linestyle() for patch in ax.patches if not patch.get_fill()}) == len(explainer.classes_)


def test_levels_with_an_order_are_named_on_the_axis(explainer):
    ax = plots.cover(explainer, "famhist", "ldl")
    assert tick_names(ax.xaxis) == ["Absent", "Present"]


def test_a_walk_goes_from_factual_to_counterfactual(answers, explainer):
    walked = next(a for a in answers if a.semifactuals[0] is not None and "famhist" not in a.counterfactuals[0].changed)
    found = walked.counterfactuals[0]
    ax = plots.walk(walked, "tobacco", "ldl", ax=plots.cover(explainer, "tobacco", "ldl"))
    path = ax.lines[0].get_xydata()
    for point, values in zip(path, (found.factual, found.semifactual.values, found.values), strict=True):
        assert point.tolist() == [values["tobacco"], values["ldl"]]
    assert [said.split(":")[0] for said in legend_names(ax)] == ["factual", "semifactual", "counterfactual"]
    with pytest.raises(ParameterError, match="has 2 counterfactuals, got place=5"):
        plots.walk(walked, "tobacco", "ldl", place=5)


def test_before_and_after_show_each_changed_feature_with_its_values(answers):
    found = max((f for a in answers for f in a.counterfactuals), key=lambda f: f.n_changes)
    ax = plots.before_after(found)
    assert tick_names(ax.yaxis) == list(found.changed)
    lengths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, -1).T
    assert (np.abs(lengths).max(axis=1) <= 1).all()
    assert len(texts(ax)) == 2 * found.n_changes
    assert len({bar.get_hatch() for bar in ax.patches}) == 2


def test_a_level_has_no_bar_but_is_written():
    table = pd.DataFrame({"city": list("ABAB") * 5, "x": [0.0, 1, 2, 3] * 5})
    found = ONBMACF().fit(table, lambda rows: np.where(rows["city"] == "A", "no", "yes")).explain(table.head(1))[0]
    ax = plots.before_after(found.counterfactuals[0])
    assert [bar.get_width() for bar in ax.patches] == [0.0, 0.0]
    assert texts(ax) == ["A", "B"]


def test_change_frequencies_are_the_counts_split_by_direction(answers, explainer):
    counted = audit.changes_by_feature(answers, explainer.schema_)
    counted = counted[counted["count"] > 0]
    ax = plots.change_frequencies(counted)
    total = {}
    for bar in ax.patches:
        place = round(bar.get_y() + bar.get_height() / 2)
        total[place] = total.get(place, 0) + bar.get_width()
    assert [total[place] for place in sorted(total)] == pytest.approx(counted["count"].tolist())
    assert tick_names(ax.yaxis) == counted["feature"].tolist()
    assert len({bar.get_hatch() for bar in ax.patches}) == len(legend_names(ax))


def test_the_heat_map_writes_the_lower_half(answers):
    matrix = audit.pair_matrix(answers)
    ax = plots.pair_heatmap(matrix)
    names = tick_names(ax.yaxis)
    for text in ax.texts:
        column, row = (names[round(place)] for place in text.xy)
        assert text.get_text() == str(matrix.loc[row, column])
    assert len(ax.texts) == len(names) * (len(names) + 1) // 2


def test_burden_draws_mean_and_interval_of_each_group(answers):
    frame = audit.burden(answers, "famhist")
    ax = plots.burden(frame, "n_changes")
    mine = frame[frame["measure"] == "n_changes"]
    means = [container.lines[0].get_xdata()[0] for container in ax.containers]
    assert means == mine["estimate"].tolist()
    whiskers = [container.lines[2][0].get_segments()[0][:, 0].tolist() for container in ax.containers]
    assert np.array(whiskers) == pytest.approx(mine[["low", "high"]].to_numpy())
    assert tick_names(ax.yaxis) == [f"{g} (n = {n})" for g, n in zip(mine["group"], mine["n_rows"], strict=True)]
    assert len({container.lines[0].get_marker() for container in ax.containers}) == 2


def test_a_group_without_an_interval_is_drawn_as_a_point(answers):
    groups = ["alone"] + ["others"] * (len(answers) - 1)
    ax = plots.burden(audit.burden(answers, groups))
    assert [len(container.lines[2]) for container in ax.containers] == [0, 1]


def test_the_front_joins_what_nothing_beats():
    points = pd.DataFrame({"distance": [3, 1, 2, 4], "plausibility": [0.4, 0.2, 0.6, 1.0], "n_changes": [2, 1, 1, 3]})
    ax = plots.front(points)
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.2], [2, 0.6], [4, 1.0]]
    assert ax.lines[1].get_xydata().tolist() == [[3, 0.4]]
    assert [said.strip() for said in texts(ax)] == ["1", "1", "2", "3"]
    with pytest.raises(ParameterError, match="missing: 'plausibility'"):
        plots.front(points.drop(columns="plausibility"))


def test_the_radar_takes_any_metrics():
    scores = pd.DataFrame({"method": ["A", "_B"], "near": [1.0, 0.5], "sparse": [0.2, np.nan], "valid": [1.0, 0.0]})
    ax = plots.radar(scores, ["near", "sparse", "valid"], own="A")
    assert ax.lines[0].get_ydata().tolist() == [1.0, 0.2, 1.0, 1.0]
    assert ax.lines[1].get_ydata().tolist() == [0.5, 0.0, 0.0, 0.5]
    assert legend_names(ax) == ["A", "_B"]
    assert tick_names(ax.xaxis) == ["near", "sparse", "valid"]


@pytest.mark.parametrize(
    "draw, pattern",
    [
        (lambda e, a: plots.cover(e, "tabacco", "ldl"), "'tabacco' is not a column. Did you mean 'tobacco'"),
        (lambda e, a: plots.walk(a[0], "famhist", "ldl"), "'famhist' is not a number"),
        (lambda e, a: plots.walk(a[0], "nothing", "ldl"), "'nothing' is not a column"),
        (lambda e, a: plots.burden(audit.burden(a, "famhist"), "cost"), "measure must be one of 'share_found'"),
    ],
)
def test_bad_arguments_are_said(explainer, answers, draw, pattern):
    with pytest.raises(ParameterError, match=pattern):
        draw(explainer, answers)


def test_pictures_neither_show_nor_touch_pyplot(answers, explainer):
    import subprocess
    import sys

    code = (
        "import sys, pandas as pd; from onbmacf import plots\n"
        "plots.front(pd.DataFrame({'distance': [1], 'plausibility': [1], 'n_changes': [1]}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    ax = plots.change_frequencies(audit.changes_by_feature(answers))
    assert plots.change_frequencies(audit.changes_by_feature(answers), ax=ax) is ax


def test_nothing_to_draw_gives_an_empty_picture(explainer, table):
    none = explainer.explain(table.head(0))
    assert not plots.change_frequencies(audit.changes_by_feature(none)).patches
    assert not plots.pair_heatmap(audit.pair_matrix(none)).texts
