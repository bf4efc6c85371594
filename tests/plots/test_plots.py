"""What the pictures draw, not their pixels."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")

from matplotlib.figure import Figure

from onbmacf import ONBMACF, Blocks, Schema, audit, plots
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


def test_a_level_has_a_box_instead_of_a_bar():
    table = pd.DataFrame({"city": list("ABAB") * 5, "x": [0.0, 1, 2, 3] * 5})
    found = ONBMACF().fit(table, lambda rows: np.where(rows["city"] == "A", "no", "yes")).explain(table.head(1))[0]
    ax = plots.before_after(found.counterfactuals[0])
    assert [bar.get_width() for bar in ax.patches] == [0.0, 0.0]
    assert texts(ax) == ["A", "B"]
    boxes = [text.get_bbox_patch() for text in ax.texts]
    assert len({box.get_linestyle() for box in boxes}) == 2


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


def test_a_front_of_many_points_numbers_the_joined_ones():
    places = np.arange(20)
    points = pd.DataFrame({"distance": 1.0 + places, "plausibility": np.where(places == 7, 0.8, 0.2), "n_changes": 3})
    ax = plots.front(points)
    assert [tuple(text.xy) for text in ax.texts] == [(1.0, 0.2), (8.0, 0.8)]
    assert ax.get_ylim()[0] < 0 < 1 < ax.get_ylim()[1]


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
        (lambda e, a: plots.before_after(a), "this plot is of one row, got answers for 60: pick one"),
        (lambda e, a: plots.before_after(a.rows), "give an explanation or one of its counterfactuals, got DataFrame"),
        (lambda e, a: plots.change_frequencies(e), "give what explain returned, .* got ONBMACF"),
        (lambda e, a: plots.burden(a), "say which groups to draw: by= "),
        (lambda e, a: plots.burden(a, by="famhis"), "by names 'famhis', which is not a column. Did you mean 'famhist'"),
        (lambda e, a: plots.walk(a[0], "nothing", "ldl"), "'nothing' is not a column"),
        (lambda e, a: plots.burden(audit.burden(a, "famhist"), "cost"), "measure must be one of 'share_found'"),
    ],
)
def test_bad_arguments_are_said(explainer, answers, draw, pattern):
    with pytest.raises(ParameterError, match=pattern):
        draw(explainer, answers)


def test_a_plot_is_pyplots_unless_told_where_to_draw(answers, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda *_: pytest.fail("a plot was shown"))
    ax = plots.change_frequencies(answers)
    assert pyplot.fignum_exists(ax.figure.number)
    assert plots.change_frequencies(answers, ax=ax) is ax
    before = pyplot.get_fignums()
    figure = Figure(figsize=(1, 1))
    drawn = plots.change_frequencies(answers, ax=figure)
    assert drawn.figure is figure
    assert tuple(figure.get_size_inches()) == tuple(ax.figure.get_size_inches())
    part = Figure().subfigures(1, 2)[1]
    assert plots.change_frequencies(answers, ax=part).figure is part
    assert pyplot.get_fignums() == before


def test_a_report_leaves_no_figure_open(answers, explainer):
    pytest.importorskip("jinja2")
    from matplotlib import pyplot

    from onbmacf.report import audit_report

    before = pyplot.get_fignums()
    audit_report(explainer, answers, by=["famhist"]).html()
    assert pyplot.get_fignums() == before


DRAWN_FROM_ANSWERS = {
    "change_frequencies": (lambda a: plots.change_frequencies(a), lambda a: audit.changes_by_feature(a)),
    "pair_heatmap": (lambda a: plots.pair_heatmap(a), lambda a: audit.pair_matrix(a)),
    "front": (lambda a: plots.front(a), lambda a: a.to_frame()),
}


@pytest.mark.parametrize("name", DRAWN_FROM_ANSWERS)
def test_answers_and_their_frame_are_drawn_alike(answers, name):
    draw, framed = DRAWN_FROM_ANSWERS[name]
    assert drawn(draw(answers)) == drawn(draw(framed(answers)))


@pytest.mark.parametrize("name", DRAWN_FROM_ANSWERS)
def test_an_explanation_is_drawn_as_the_answers_for_its_row(answers, name):
    draw, _ = DRAWN_FROM_ANSWERS[name]
    place = next(place for place, answer in enumerate(answers) if answer.counterfactuals)
    assert drawn(draw(answers[place])) == drawn(draw(answers[place : place + 1]))


def drawn(ax):
    bars = [tuple(np.round(bar.get_bbox().bounds, 9)) for bar in ax.patches]
    return texts(ax), tick_names(ax.yaxis), bars, [line.get_xydata().tolist() for line in ax.lines]


def test_burden_groups_the_answers_itself(answers):
    ax = plots.burden(answers, "n_changes", by="famhist")
    assert tick_names(ax.yaxis) == tick_names(plots.burden(audit.burden(answers, "famhist"), "n_changes").yaxis)
    many = pd.Series([f"town {place % 30}" for place in range(len(answers))], index=answers.rows.index)
    assert len(tick_names(plots.burden(answers, by=many).yaxis)) == 8
    assert tick_names(plots.burden(answers, by="age").yaxis)[0].startswith("below")
    assert len(tick_names(plots.burden(answers, by=["a", "b"] * 30).yaxis)) == 2


def test_the_natural_plot_of_one_row_is_its_best_counterfactual_and_of_many_the_frequencies(answers):
    one = next(answer for answer in answers if len(answer.counterfactuals) == 2)
    assert drawn(one.plot()) == drawn(one.counterfactuals[0].plot()) == drawn(plots.before_after(one))
    assert drawn(one.plot(place=1)) == drawn(one.counterfactuals[1].plot()) != drawn(one.plot())
    assert drawn(answers.plot()) == drawn(plots.change_frequencies(answers))
    place = list(answers.rows.index).index(one.factual.name)
    assert drawn(answers[place : place + 1].plot()) == drawn(one.plot())
    ax = plots.before_after(one)
    assert answers.plot(ax=ax) is ax


def test_a_row_without_a_counterfactual_is_drawn_as_its_reason(explainer, table):
    answer = explainer.explain(table.head(1), target=str(model(table.head(1))[0]))[0]
    assert not answer.counterfactuals
    ax = answer.plot()
    assert ax.get_title() == "No counterfactual for row 0"
    assert " ".join(texts(ax)[0].split()) == f"already: {answer.reason}"


def test_a_walk_needs_no_more_than_a_counterfactual(answers):
    found = next(a for a in answers if a.counterfactuals).counterfactuals[0]
    names = legend_names(plots.walk(found, "tobacco", "ldl"))
    assert (names[0], names[-1]) == ("factual", f"counterfactual: '{found.label}'")


def test_a_cover_of_many_balls_is_paler_and_says_what_is_left_out(explainer):
    few, many = (plots.cover(explainer, "tobacco", "ldl", largest=largest) for largest in (7, None))
    said, n_balls = few.get_title(loc="left"), len(explainer.cover_)
    share = 100 * np.sort(np.bincount(explainer.cover_.owner))[-7:].sum() / len(explainer.labels_)
    assert said == f"7 of {n_balls} balls, with {share:.0f} % of the rows"
    assert many.get_title(loc="left") == ""
    one = plots.cover(explainer, "tobacco", "ldl", largest=1)
    for place in (0, 1):  # the area and the outline of the largest
        assert many.patches[place].get_alpha() < one.patches[place].get_alpha()


def test_what_is_not_drawn_is_counted(wide):
    assert texts(plots.change_frequencies(wide, most=4))[-1] == "and 26 other features"
    assert plots.pair_heatmap(wide, most=4).get_title(loc="left") == "26 other features are not drawn"
    assert len(tick_names(plots.before_after(wide).yaxis)) == 30


@pytest.fixture(scope="module")
def wide():
    """Answers that change 30 features with long names, alike but for their ends."""
    names = [f"the measurement of something in the course of year {place}" for place in range(30)]
    rows = pd.DataFrame(np.repeat([[0.0], [1.0]] * 10, 30, axis=1), columns=names)
    explainer = ONBMACF(plausibility=0).fit(rows, lambda given: np.where(given.min(axis=1) > 0.5, "in", "out"))
    return explainer.explain(rows.head(1), target="in")


@pytest.mark.parametrize(
    "draw",
    [lambda a: plots.change_frequencies(a), lambda a: plots.pair_heatmap(a), lambda a: a.plot()],
)
def test_long_names_still_differ_and_nothing_is_cut_off(wide, draw):
    ax = draw(wide)
    names = tick_names(ax.yaxis)
    assert len(set(names)) == len(names) > 1
    assert max(map(len, names)) <= 40
    ax.figure.canvas.draw()
    page, drawn = ax.figure.bbox, ax.figure.get_tightbbox().transformed(ax.figure.dpi_scale_trans)
    assert drawn.x0 >= page.x0 - 1
    assert drawn.y0 >= page.y0 - 1
    assert drawn.x1 <= page.x1 + 1
    assert drawn.y1 <= page.y1 + 1


def test_names_that_differ_in_the_middle_are_told_apart():
    levels = [f"the level that is called number {place} of all the levels" for place in range(9)]
    groups = pd.Series(levels * 2)
    table = pd.DataFrame({"x": np.arange(18) % 7, "y": np.arange(18) % 5})
    answers = ONBMACF().fit(table, lambda rows: rows["x"] > 3).explain(table)
    names = tick_names(plots.burden(answers, by=groups).yaxis)
    assert len(set(names)) == len(names) == 8
    assert names[-1] == "2 others (n = 4)"


def test_of_many_levels_along_an_axis_some_are_named():
    levels = [f"level {place:02}" for place in range(40)]
    table = pd.DataFrame({"grade": levels * 5, "x": np.arange(200.0)})
    schema = Schema.infer(table, ordinal={"grade": levels})
    ax = plots.cover(ONBMACF().fit(table, lambda rows: rows["x"] > 90, schema=schema), "grade", "x")
    assert tick_names(ax.xaxis) == levels[::2]
    assert ax.get_xticks().tolist() == list(range(0, 40, 2))


def test_nothing_to_draw_gives_an_empty_picture(explainer, table):
    none = explainer.explain(table.head(0))
    assert not plots.change_frequencies(audit.changes_by_feature(none)).patches
    assert not plots.pair_heatmap(audit.pair_matrix(none)).texts


def test_dates_lie_along_the_axes_of_the_map_and_the_walk():
    place = np.arange(60)
    table = pd.DataFrame(
        {
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(place * 3, "D"),
            "time": pd.Timestamp("2024-01-01 05:00") + pd.to_timedelta(place * 3601, "s"),
            "wait": pd.to_timedelta(place % 7, "h"),
            "month": pd.period_range("2020-01", periods=60, freq="M"),
            "fee": place % 5 / 2,
        }
    )
    explainer = ONBMACF().fit(table, lambda rows: rows["day"] > "2024-03-01")
    answers = explainer.explain(table.iloc[[50]])
    for x, y in (("day", "time"), ("wait", "month"), ("month", "day"), ("fee", "day")):
        ax = plots.walk(answers, x, y, ax=plots.cover(explainer, x, y))
        ax.figure.canvas.draw()
        start = ax.lines[1].get_xydata()[0]  # the factual's mark lies on the row's own
        rows = np.concatenate([marks.get_offsets() for marks in ax.collections])
        assert np.isclose(rows, start, rtol=0, atol=1e-6).all(axis=1).any()
        written = [tick.get_text() for axis in (ax.xaxis, ax.yaxis) for tick in axis.get_ticklabels()]
        assert not any(re.fullmatch(r"1\d{4}(\.0)?", text) for text in written)  # days since 1970
        assert ("month" in (x, y)) <= any(re.fullmatch(r"20\d\d-\d\d", text) for text in written)
    plots.walk(answers, "day", "fee")


def test_a_cover_says_how_many_rows_lack_a_value_and_are_not_drawn():
    table = pd.DataFrame({"x": np.arange(60.0), "y": np.where(np.arange(60) % 6, np.arange(60) % 7, np.nan)})
    explainer = ONBMACF().fit(table, lambda rows: rows["x"] > 30)
    said = plots.cover(explainer, "x", "y", largest=None).get_title(loc="left")
    assert said.endswith("10 rows lack a value and are not drawn")


def test_a_number_that_is_filled_in_is_no_level_and_a_small_share_is_not_nothing():
    changes = pd.DataFrame({"feature": ["a", "b"], "count": [299, 1], "share": [299 / 300, 1 / 300]})
    changes = changes.assign(up=[0.0, np.nan], down=[0.5, np.nan])
    ax = plots.change_frequencies(changes)
    assert legend_names(ax) == ["down", "to another level", "filled in"]
    assert texts(ax)[:2] == ["299 (>99 %)", "1 (<1 %)"]
    levels, filled = ([bar.get_width() for bar in bars] for bars in ax.containers[1:])
    assert (levels, filled) == ([0, 1], [149.5, 0])


def test_axes_that_end_a_cell_of_a_notebook_print_nothing_below_their_picture(answers, tmp_path):
    """The picture is shown by the figure; the cell's own value read <Axes: title=...>."""
    from IPython.core.formatters import DisplayFormatter

    ax = answers.plot()
    assert DisplayFormatter().format(ax) == ({}, {})
    pickle.loads(pickle.dumps(ax.figure))  # figures are sent to processes


def test_the_numbers_of_a_front_are_explained(answers):
    ax = plots.front(answers[:1])
    assert "beside each point: how many features change" in ax.get_xlabel()


# --- pictures and series ----------------------------------------------------------------------------------------------


def arrays(blocks):
    rows = np.random.default_rng(0).integers(0, 17, (60, 12)).astype(float)
    explainer = ONBMACF().fit(rows, lambda rows: (rows[:, 5] + rows[:, 6] > 16).astype(int), blocks=blocks)
    return explainer.explain(rows[:6])


def test_a_picture_is_drawn_before_and_after_beside_its_donor():
    answers = arrays(Blocks.grid((3, 4), (1, 2)))
    found = answers[1].counterfactuals[0]
    ax = plots.image(answers[1])
    assert texts(ax) == ["before", "after", "donor", "change"]
    drawn = [picture.get_array() for picture in ax.images]
    rows = [found.factual, found.values, found.donor_values]
    low, high = min(map(min, rows)), max(map(max, rows))
    for picture, row in zip(drawn, rows, strict=False):
        assert np.allclose(picture, (row.to_numpy().reshape(3, 4) - low) / (high - low))
    assert np.array_equal(drawn[3], (found.values - found.factual).to_numpy().reshape(3, 4))
    outlined = [box for box in ax.patches if box.get_linewidth() > 1]
    assert len(outlined) == 2 * len(found.blocks)  # in what comes after, and in the change
    assert {(box.get_width(), box.get_height()) for box in outlined} == {(2, 1)}
    top, left = (int(one.split(":")[0]) for one in found.blocks[0][1:-1].split(", "))
    step = 4 * 1.12
    assert {(round(box.get_x() - k * step, 6), box.get_y()) for box, k in zip(outlined[:1], [1], strict=True)} == {
        (left, top)
    }


def test_a_picture_without_blocks_has_no_donor_and_needs_a_shape():
    answers = arrays(None)
    ax = plots.image(answers[0], (3, 4))
    assert texts(ax) == ["before", "after", "change"]
    outlined = [box for box in ax.patches if box.get_linewidth() > 1]
    assert len(outlined) == 2 * answers[0].counterfactuals[0].n_changes
    assert texts(plots.image(answers[0], (2, 2, 3)))[0] == "before"  # in colours
    for shape in (None, (3, 3), (12,)):
        with pytest.raises(ParameterError, match="shape must be rows and columns of a picture of 12 columns"):
            plots.image(answers[0], shape)


def test_a_series_has_its_exchanged_segments_shaded():
    answers = arrays(Blocks.segments(12, 3))
    found = answers[2].counterfactuals[0]
    ax = plots.series(answers[2])
    assert legend_names(ax) == ["before", "after", "donor", "exchanged"]
    for line, row in zip(ax.lines, (found.factual, found.values, found.donor_values), strict=True):
        assert line.get_ydata().tolist() == row.tolist()
    shaded = sorted((box.get_x(), box.get_x() + box.get_width()) for box in ax.patches)
    positions = {at for low, high in shaded for at in range(12) if low < at < high}
    assert positions == {int(name[1:]) for block in found.blocks for name in found.of_blocks.groups[block]}
    assert legend_names(plots.series(arrays(None)[0])) == ["before", "after", "exchanged"]


def test_rows_that_are_no_numbers_are_no_picture(answers):
    with pytest.raises(ParameterError, match="pictures and series are rows of numbers"):
        plots.series(next(one for one in answers if one.counterfactuals))
    none = ONBMACF().fit(np.arange(12.0).reshape(6, 2), lambda rows: (rows[:, 0] > 5).astype(int))
    ax = plots.image(none.explain(np.array([[0.0, 1.0]]), immutable=["x0"]), (1, 2))
    assert "No counterfactual for row 0" in ax.get_title()
