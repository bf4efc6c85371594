"""The guards of rows and of the model, one table each: see tests/guards.py."""

from borders.guard import Guard

EXACT = "return np.array([_number(value) for value in column.tolist()], dtype=np.float64)"
NUMBER = "if not isinstance(value, Real | Decimal | np.bool_):"
CHANGES = "return (given != value) & ~np.isnan(value) | (np.abs(value) >= LARGEST_EXACT)"
SAME = "return np.zeros(value.shape, dtype=bool)"
CELL = "test_rows.py::test_a_cell_that_does_not_fit_costs_its_own_row_only"
COLUMN = "test_rows.py::test_a_column_of_another_kind_is_no_error_but_a_reason_in_each_row"
NAMES = "test_rows.py::test_names_decide_never_positions"
TEXT = "test_rows.py::test_numbers_as_text_never_become_categories_unsaid"
SEVERAL = "test_model.py::test_a_model_whose_answers_cannot_be_read_is_refused_at_fit"
ROWS = {
    "1e308 in a narrow column": Guard(
        "_rows/gate.py", "FARTHEST = 1e80", "FARTHEST = np.inf", f"{CELL}[too far to encode]"
    ),
    "300 in int8": Guard("_rows/gate.py", CHANGES, SAME, f"{CELL}[beyond int8]"),
    "5.5 in whole numbers": Guard("_rows/gate.py", CHANGES, SAME, f"{CELL}[half in int64]"),
    "10**30": Guard("_rows/gate.py", CHANGES, SAME, f"{CELL}[beyond int64]"),
    "10**400": Guard(
        "_rows/cells.py",
        "except OverflowError:\n        return np.inf",
        "except KeyError:\n        return np.inf",
        f"{CELL}[beyond float64]",
    ),
    "text in categories": Guard(
        "_rows/cells.py", EXACT, "return column.to_numpy(dtype=np.float64)", f"{COLUMN}[categories of text]"
    ),
    "a period": Guard("_rows/cells.py", EXACT, "return column.to_numpy(dtype=np.float64)", f"{CELL}[a period]"),
    "ragged lists": Guard(
        "_rows/containers.py",
        "        _check_cells(values)\n",
        "",
        "test_rows.py::test_what_is_no_rows_is_refused[ragged]",
    ),
    "polars by position": Guard(
        "_columns/polars_frames.py",
        "return pd.DataFrame(columns, index=pd.RangeIndex(table.height))",
        "return pd.DataFrame(columns, index=pd.RangeIndex(table.height)).to_numpy()",
        f"{NAMES}[polars]",
    ),
    "pyarrow by position": Guard(
        "_columns/frames.py",
        "return table.to_pandas(types_mapper=dtype_of)",
        "return table.to_pandas().to_numpy()",
        f"{NAMES}[pyarrow]",
    ),
    "streams by position": Guard(
        "_rows/containers.py",
        "return _by_name(rows)",
        "return _positional(_by_name(rows).to_numpy(), names)",
        f"{NAMES}[arrow stream]",
    ),
    "an unhashable level": Guard(
        "_rows/cells.py",
        "except Exception:  # a value that cannot be hashed, or",
        "except KeyError:  # a value that cannot be hashed, or",
        f"{CELL}[a level that cannot be hashed]",
    ),
    "an unhashable level among many": Guard(
        "_rows/cells.py",
        "except TypeError:  # values that cannot be hashed, such as lists\n            pass",
        "except TypeError:\n            return np.full(len(column), -1.0)",
        "test_rows.py::test_many_rows_lose_only_those_with_a_level_that_cannot_be_hashed",
    ),
    "12,5": Guard(
        "_base/numeric_text.py",
        r"\d+ (?:[.,]\d*)? | [.,]\d+ )",
        r"\d+ (?:[.]\d*)? | [.]\d+ )",
        f"{TEXT}[decimal comma]",
    ),
    "4,000": Guard("_base/numeric_text.py", "[,.'", "[~'", f"{TEXT}[thousands]"),
    "one ?": Guard("_base/numeric_text.py", "LEAST = 0.5", "LEAST = 1.0", f"{TEXT}[one mark]"),
    "a lone Timestamp": Guard(
        "_rows/cells.py",
        NUMBER,
        "value = getattr(value, 'value', value)\n    if is_absent(value):",
        f"{CELL}[a date as a number]",
    ),
    "dates as nanoseconds": Guard(
        "_rows/cells.py",
        'if isinstance(dtype, np.dtype) and dtype.kind in "fiub":\n        return column',
        'if isinstance(dtype, np.dtype) and dtype.kind in "fiubmM":\n        return column',
        f"{COLUMN}[dates]",
    ),
    "categories of dates": Guard(
        "_rows/cells.py",
        "for level in column.categories.tolist()]",
        "for level in column.categories.astype(str)]",
        "test_rows.py::test_categories_of_dates_are_levels",
    ),
    "0.10000000149 for Rule(high=.1)": Guard(
        "_rows/cells.py",
        "narrow = given.astype(dtype)\n",
        "return given\n",
        "test_rows.py::test_a_rule_holds_for_the_value_as_the_model_gets_it[float32, high]",
    ),
    "an immutable value that breaks its rule": Guard(
        "_rows/constraints.py",
        "factual = as_given(self.space.form, self._decoded(z))",
        "factual = self._decoded(z)",
        "test_rows.py::test_a_rule_that_the_row_itself_breaks_moves_no_immutable_value[float32-paper]",
    ),
    "several labels per row": Guard(
        "_rows/replies.py", "        _check_one_label(answer[~is_nan])\n", "", f"{SEVERAL}[several labels per row]"
    ),
    "a label that cannot be written": Guard(
        "_rows/model.py",
        "    check_written(found)\n",
        "",
        "test_model.py::test_a_model_whose_answers_cannot_be_read_is_refused_at_fit[half a character]",
    ),
    "one bad row, all lost": Guard(
        "_rows/gate.py",
        "for row in np.flatnonzero(bad).tolist():",
        "for row in range(len(bad) * bool(bad.any())):",
        f"{CELL}[beyond int8]",
    ),
    "half a character": Guard(
        "_columns/frames.py",
        "return pd.DataFrame(cells, columns=columns, dtype=object)",
        "raise",
        f"{CELL}[half a character]",
    ),
    "names with levels": Guard(
        "_rows/form.py",
        "missing = [name for name in names if name not in given]",
        "missing = [name for name in names if name not in frame.columns]",
        "test_rows.py::test_what_is_no_rows_is_refused[names with levels]",
    ),
    "a number for a date": Guard(
        "_columns/converters.py",
        'if self.kind != "decimal" and _has_number(column):',
        "if False:",
        "test_rows.py::test_a_number_is_no_time[time]",
    ),
    "an infinite row in JSON": Guard(
        "_text/records.py",
        "(isinstance(value, float) and isfinite(value))",
        "isinstance(value, float)",
        "test_rows.py::test_a_row_that_is_not_finite_is_written_with_the_others",
    ),
}

REFUSED = "test_model.py::test_a_model_whose_answers_cannot_be_read_is_refused_at_fit"
FAILING = "test_model.py::test_a_row_that_fails_costs_no_other_row_anything"
COMPANY = "test_model.py::test_a_model_that_compares_rows_is_warned_of_with_the_rate"
ORDERS = "((every[::-1], len(N)), (every[::2], 0), (every[1::2], 0), (alone, 1))"
TOLD = "test_model.py::test_what_the_model_did_off_the_data_is_told"
MODEL = {
    "probabilities of another shape": Guard(
        "_rows/replies.py", "if answer.shape != (n_rows, n_classes):", "if False:", f"{REFUSED}[a column too many]"
    ),
    "predict_proba raises on a row": Guard(
        "_rows/isolate.py",
        "    except Exception as error:\n        answer = error",
        "    except KeyError as error:\n        answer = error",
        f"{FAILING}[predict_proba-0.6]",
    ),
    "predict raises on a row": Guard(
        "_rows/isolate.py", "len(lines) == 1 or left[0] < 2", "True", f"{FAILING}[predict-0.0]"
    ),
    "predict_proba always raises": Guard(
        "_rows/model.py",
        "if len(errors) == len(pieces):",
        "if False:",
        "test_model.py::test_probabilities_that_always_raise_are_left_out_with_a_warning",
    ),
    "codes beside words": Guard(
        "_rows/replies.py",
        "if any(label not in names for label in labels):",
        "if False:",
        f"{REFUSED}[codes beside words]",
    ),
    "NaN at fit": Guard("_rows/model.py", "            if bad:\n", "            if False:\n", f"{REFUSED}[NaN]"),
    "NaN passes a minimum": Guard(
        "_batch/factuals.py",
        "~(sure >= self.call.query.min_probability)",
        "(sure < self.call.query.min_probability)",
        "test_model.py::test_nan_never_passes_a_minimum",
    ),
    "NaN is not told": Guard(
        "_rows/model.py",
        "elif noted is not None and np.isnan(answer).any():",
        "elif False:",
        "test_model.py::test_nan_never_passes_a_minimum",
    ),
    "a minimum that persist ignores": Guard(
        "_batch/factuals.py",
        "factual[good])\n        self._forbid(",
        "factual[good])\n        self.call.options.recover == 'persist' or self._forbid(",
        "test_model.py::test_the_least_probability_holds_whatever_becomes_of_home_balls[refined-persist]",
    ),
    "errors off the data": Guard(
        "_rows/notes.py", "self._raised.setdefault(own, raised_words(error))", "pass", f"{TOLD}[raises-nothing]"
    ),
    "unseen labels off the data": Guard(
        "_rows/notes.py", "            known.append(plain)", "            pass", f"{TOLD}[says another label-a rule]"
    ),
    "probes shuffled": Guard(
        "_rows/company.py", ORDERS, "((every[::2], 0), (every[1::2], 0), (alone, 1))", f"{COMPANY}[the order-40]"
    ),
    "probes in other batches": Guard(
        "_rows/company.py", ORDERS, "((every[::-1], len(N)), (alone, 1))", f"{COMPANY}[many or few-40]"
    ),
    "probes row by row": Guard(
        "_rows/company.py",
        ORDERS,
        "((every[::-1], len(N)), (every[::2], 0), (every[1::2], 0))",
        f"{COMPANY}[a single row-40]",
    ),
    "the mean": Guard("_rows/company.py", ORDERS, "()", f"{COMPANY}[the mean-40]"),
    "counts of threads": Guard(
        "_rows/model.py",
        "replace(self, counts=Counts(), unseen=list(self.unseen), notices=[])",
        "replace(self, notices=[])",
        "test_model.py::test_eight_threads_state_what_each_of_them_asked[{}]",
    ),
    "retries not counted": Guard(
        "_rows/model.py",
        "self.counts.count(len(N), len(rows))\n        return labels_of(",
        "self.counts.count(len(N), 0)\n        return labels_of(",
        "test_model.py::test_retries_are_counted_as_what_was_sent",
    ),
    "labels beyond int64": Guard(
        "_rows/model.py",
        "isinstance(label, int) and abs(label) < 2**63 for",
        "isinstance(label, int) for",
        "test_model.py::test_labels_are_as_large_as_they_like[beyond int64]",
    ),
    "an error without words": Guard(
        "_base/error_words.py",
        "except Exception as own:",
        "except KeyError as own:",
        f"{TOLD}[raises what has no words-nothing]",
    ),
    "scores as probabilities": Guard(
        "_rows/model.py", "check_probabilities(answer, rows[lines])", "pass", f"{REFUSED}[scores as probabilities]"
    ),
    "max_seconds": Guard(
        "_base/deadline.py",
        "return deadline != NEVER and time() >= deadline",
        "return False",
        "test_time.py::test_rows_that_were_not_reached_say_so",
    ),
    "the best so far": Guard(
        "_base/deadline.py",
        "return deadline != NEVER and time() >= deadline",
        "return False",
        "test_time.py::test_what_is_returned_when_the_time_is_up_holds[3-refined]",
    ),
    "a server that does not answer": Guard(
        "io/remote.py",
        ".open(request, timeout=self.timeout)",
        ".open(request)",
        "../test_remote_model.py::test_a_slow_server_is_left_in_time",
    ),
}
