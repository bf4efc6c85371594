"""The figures of the work beside the model: the model's own time is left out, and every row of a call is counted."""

import numpy as np


def test_what_the_model_takes_is_measured_apart():
    import speed_own

    table = speed_own.mixed()
    model = speed_own.Cheap(table)
    model.predict(table.head(3))
    model.predict(table.head(5))
    assert [len(rows) for rows in model.asked] == [3, 5]
    assert model.seconds() >= 0
    assert model.asked == []


def test_the_mixed_table_has_the_shape_of_german_credit():
    from speed_own import Cheap, mixed

    table = mixed()
    assert table.shape == (1000, 20)
    assert len(table.select_dtypes("number").columns) == 7
    assert np.bincount(Cheap(table).predict(table)).tolist() == [700, 300]


def test_a_short_run_gives_every_figure():
    from speed_own import heart, measured, parsed, shown

    figures = measured(heart(), parsed(["--rows", "2", "--batch", "4"]))
    assert (figures["rows"], figures["batch_rows"]) == (2, 4)
    assert figures["own_ms_worst"] >= figures["own_ms"]
    assert figures["calls"] > 2
    assert "ms per row of 4" in shown(figures)


def test_the_first_use_of_a_process_is_measured_in_a_fresh_one():
    from speed_own import fresh, page, shown_first

    figures = fresh("heart", 1)
    assert set(figures) == {"fit", "fit_later", "answer", "answer_of_map", "answer_later"}
    assert all(value > 0 for value in figures.values())
    assert "first fit of a process" in shown_first(figures)
    assert "| uniform, 10,000 x 10 |  |  |" in page({"quick": False, "tables": {}, "first": {"uniform": figures}})


def test_what_one_answer_passes_is_counted_without_the_model():
    from passed import counted
    from speed_own import Cheap, heart

    table = heart()
    files, functions, calls = counted(table, Cheap(table))
    assert 0 < files < functions < calls
    assert counted(table, Cheap(table)) == (files, functions, calls)
