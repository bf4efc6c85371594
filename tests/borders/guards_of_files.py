"""The guards of results, files, what is held, and long work, one table each: see tests/guards.py."""

from borders.guard import Guard

FULL = "test_outputs.py::test_a_full_disk_at_the_last_step_loses_no_answer"
KEPT = "test_outputs.py::test_what_is_no_regular_file_or_is_read_is_not_replaced"
OUTPUTS = {
    "a missing extra": Guard(
        "cli/output_file.py",
        "            import_module(module)\n",
        "            pass\n",
        "test_outputs.py::test_a_missing_extra_is_told_before_the_work",
    ),
    "a folder that is not there": Guard(
        "cli/output_file.py",
        "if not out.parent.is_dir():",
        "if False:",
        "test_outputs.py::test_a_folder_that_is_not_there_is_told_before_the_work",
    ),
    "names that are one as text": Guard(
        "cli/output_file.py",
        'if kind == "json" else []',
        "if False else []",
        "test_outputs.py::test_names_that_are_one_as_text_are_told",
    ),
    "too little space": Guard(
        "_base/files.py",
        "    if free < needed:",
        "    if False:",
        "test_outputs.py::test_a_disk_that_is_too_small_is_told_before_rows_are_explained",
    ),
    "two writers": Guard(
        "_base/sole_writer.py",
        "    except BlockingIOError:\n        return False",
        "    except BlockingIOError:\n        return True",
        "test_outputs.py::test_a_second_writer_is_told",
    ),
    "a device at --out": Guard(
        "_base/files.py", "if not stat.S_ISREG(mode):", "if stat.S_ISDIR(mode):", f"{KEPT}[a device-explain]"
    ),
    "a pipe at --out": Guard(
        "_base/files.py", "if not stat.S_ISREG(mode):", "if stat.S_ISDIR(mode):", f"{KEPT}[a named pipe-explain]"
    ),
    "a link at --out": Guard(
        "_base/files.py", "os.lstat(path).st_mode", "os.stat(path).st_mode", f"{KEPT}[a link to a file-explain]"
    ),
    "the table at --out": Guard(
        "cli/output_file.py",
        "if out.exists() and path.exists() and out.samefile(path):",
        "if False:",
        f"{KEPT}[the table-explain]",
    ),
    "parts deleted first": Guard(
        "cli/explain.py",
        "    with kept_parts(parts.folder):\n        _deliver(answers, kind, out)\n    parts.clear(rows)\n",
        "    parts.clear(rows)\n    with kept_parts(parts.folder):\n        _deliver(answers, kind, out)\n",
        f"{FULL}[explain]",
    ),
    "parts of so many jobs": Guard(
        "cli/parts.py",
        ' if name != "n_jobs"]',
        "]",
        "test_outputs.py::test_parts_do_not_depend_on_the_number_of_processes",
    ),
    "a column called status": Guard(
        "cli/outputs.py",
        '        name = f"{name}_"\n',
        "        break\n",
        "test_outputs.py::test_columns_called_like_ours_are_written",
    ),
    "escapes on a terminal": Guard(
        "cli/terminal.py",
        "if sys.stdout.isatty() and not is_drawn:",
        "if False:",
        "test_outputs.py::test_a_terminal_gets_no_raw_control_characters_and_a_file_gets_every_byte",
    ),
    "Dask rows without an answer": Guard(
        "_batch/distributed.py",
        "return line_frame(explain(frame)).astype",
        "return line_frame(explain(frame)).dropna(subset=['to']).astype",
        "../test_dask.py::test_rows_of_a_dask_frame_without_an_answer_have_a_status_line",
    ),
}

FORGED = "test_map_files.py::test_a_forged_map_is_refused_with_the_reason"
TOML = "test_rules_files.py::test_an_odd_rules_file_is_one_sentence_that_names_the_rule"
ODD_FILE = "test_machine.py::test_an_odd_file_is_one_sentence_and_exit_code_2"
MISREAD = "test_table_files.py::test_a_file_that_would_be_misread_is_one_sentence"
FILES = {
    "a map of narrow floats": Guard(
        "_disk/map_check.py",
        "as_given(space.form, N[:n_fitted])",
        "N[:n_fitted]",
        "test_map_files.py::test_a_map_of_narrow_numbers_is_loaded_and_answers_alike[float32-overlay]",
    ),
    "an odd cell of a file": Guard(
        "cli/cells.py",
        "return _numbers(column) if is_text else column",
        "return column",
        "../command_line/test_cells.py::test_an_odd_cell_of_a_file_costs_its_own_row_only[text in a column of numbers]",
    ),
    "a table for answers": Guard(
        "audit/arguments.py",
        "            check_type(name, value, form.parameters[name].annotation)\n",
        "            pass\n",
        "test_results_given.py::test_what_is_wrong_is_said[another in a mapping]",
    ),
    "bare errors of a forged map": Guard(
        "_disk/map_file.py",
        "except (OnbmacfError, MemoryError, *UNREADABLE) as error:",
        "except OnbmacfError as error:",
        f"{FORGED}[no rows]",
    ),
    "other answers of a forged map": Guard(
        "_disk/map_check.py", "        _is(not other, f", "        _is(True, f", f"{FORGED}[balls in another order]"
    ),
    "a row moved": Guard(
        "_disk/map_check.py",
        "_is(np.array_equal(again.encode_numbers(N), Z),",
        "_is(True,",
        f"{FORGED}[a row a hair off]",
    ),
    "a span of 0": Guard(
        "_disk/map_check.py", '_is(bool((arrays["span"] > 0).all()),', "_is(True,", f"{FORGED}[a span of 0]"
    ),
    "an infinite height": Guard(
        "_disk/map_check.py",
        '"height": number(above=0, finite=True)',
        '"height": number()',
        f"{FORGED}[an infinite height]",
    ),
    "a memory bomb": Guard(
        "_disk/map_check.py",
        "if options.predict_chunk * n_features * 8 > most:",
        "if False:",
        f"{FORGED}[a large call]",
    ),
    "a thousand processes": Guard(
        "_disk/map_check.py", "if options.n_jobs > MOST_JOBS:", "if False:", f"{FORGED}[a thousand processes]"
    ),
    "a block larger than the file": Guard(
        "_disk/store.py",
        "if last - first != prod(shape) * dtype.itemsize:",
        "if False:",
        "test_map_files.py::test_a_block_whose_size_the_file_does_not_have_is_refused",
    ),
    'low = "a"': Guard(
        "rules.py", '    "low": bound,', '    "low": lambda name, value: value,', f"{TOML}[text as a number]"
    ),
    'at_most = ["x", "k"]': Guard(
        "_base/typed.py", "if isinstance(value, str | bytes | Mapping) or not", "if not", f"{TOML}[two letters]"
    ),
    "an unknown key": Guard(
        "_base/typed.py", "        if key not in keys:\n", "        if False:\n", f"{TOML}[an unknown part]"
    ),
    "an empty range of whole numbers": Guard(
        "_rows/constraints.py",
        'if feature.kind == "integer" and not _has_whole(rule):',
        "if False:",
        "test_rules_files.py::test_a_rule_that_leaves_an_integer_nothing_is_refused[no whole number]",
    ),
    "a step beyond the range": Guard(
        "rules.py", "if 0 < rule.high - rule.low < (rule.step or 0):", "if False:", f"{TOML}[a step beyond the range]"
    ),
    "immutable=5": Guard(
        "_base/checks.py",
        "if not isinstance(names, Iterable) or isinstance(names, Mapping):",
        "if False:",
        "test_rules_files.py::test_an_argument_of_another_type_is_a_typed_error[immutable, a number]",
    ),
    "a list of dicts": Guard(
        "_rows/containers.py",
        "return isinstance(row, Mapping) or (isinstance(row, tuple)",
        "return (isinstance(row, tuple)",
        "test_rows.py::test_names_decide_never_positions[list of dicts]",
    ),
    "CR-only CSV": Guard(
        "io/tables.py",
        "StringIO(start, newline=None)",
        "StringIO(start)",
        "test_machine.py::test_a_file_whose_lines_end_in_carriage_returns_is_read",
    ),
    "a value too many in a line": Guard(
        "io/tables.py", ', "index_col": False}', "}", f"{MISREAD}[numbers of rows without a name]"
    ),
    "a damaged archive": Guard(
        "io/tables.py",
        "return bytes(file.read(HEAD))\n    except Exception as error:",
        "return bytes(file.read(HEAD))\n    except OSError as error:",
        f"{MISREAD}[gzip, damaged]",
    ),
    "bad Parquet": Guard(
        "io/tables.py",
        'install pyarrow") from error\n    except Exception as error:',
        'install pyarrow") from error\n    except KeyError as error:',
        f"{ODD_FILE}[bad Parquet]",
    ),
    "an inf cell": Guard(
        "_rows/form.py",
        "    bad = np.isinf(N)\n    if bad.any():",
        "    bad = np.isinf(N)\n    if False:",
        f"{ODD_FILE}[an infinite cell]",
    ),
    "a very long header": Guard(
        "io/tables.py", "except csv.Error as error:", "except KeyError as error:", f"{ODD_FILE}[a long name]"
    ),
    "--model :f": Guard(
        "io/models.py", 'if not module or not name or module.startswith("."):', "if False:", f"{ODD_FILE}[no module]"
    ),
    "a damaged lock": Guard(
        "_base/sole_writer.py",
        "        opened = os.open(lock, FLAGS, 0o600)\n",
        "        opened = os.open(lock, FLAGS, 0o600)\n        int(lock.read_text() or 0)\n",
        "test_machine.py::test_a_damaged_lock_is_no_fault",
    ),
    "a stolen library": Guard(
        "cli/models.py",
        "sys.path.append(str(Path.cwd()))",
        "sys.path.insert(0, str(Path.cwd()))",
        "test_machine.py::test_the_working_folder_comes_last_on_the_import_path_and_that_is_said",
    ),
    "a worker that dies": Guard(
        "_base/executor.py",
        "except BrokenProcessPool as error:",
        "except KeyError as error:",
        "test_machine.py::test_a_worker_that_dies_is_named",
    ),
    "a worker that cannot load": Guard(
        "_base/executor.py",
        "        return pickle.loads(packed)\n    except Exception as error:",
        "        return pickle.loads(packed)\n    except KeyError as error:",
        "test_machine.py::test_a_worker_that_cannot_load_the_model_is_named",
    ),
}

PRIVATE = "test_private.py::test_"
RECOVERED = "test_private.py::test_the_map_file_gives_no_row_back"
HELD = {
    "the file says it": Guard(
        "_disk/map_file.py", '"This file holds the fitted table: every', '"This file holds a map: every', RECOVERED
    ),
    "map info says it": Guard(
        "cli/map_info.py",
        '("holds", held(fitted.options.get("private"))),',
        "",
        "test_private.py::test_a_private_map_answers_after_loading_and_says_what_it_is",
    ),
    "the report says it": Guard(
        "report/content.py",
        '("What a saved map of it holds", _held(explainer)),',
        "",
        "test_private.py::test_a_private_report_shows_no_row",
    ),
    "fewer than k rows match": Guard(
        "_rows/private.py",
        "found[line] = 0 < len(rows) < self.k",
        "found[line] = False",
        "test_private.py::test_no_answer_matches_fewer_than_k_rows",
    ),
    "semifactuals match": Guard(
        "_batch/answers.py",
        "    if guard is None:",
        "    if True:",
        "test_private.py::test_no_answer_matches_fewer_than_k_rows",
    ),
    "rare values": Guard(
        "_rows/private.py",
        "levels[counts >= k]",
        "levels[counts >= 1]",
        f"{PRIVATE}a_level_of_fewer_than_k_rows_is_not_the_commonest_of_its_group",
    ),
    "centres of fewer than k rows": Guard(
        "_rows/private.py",
        "return all(len(half) >= k for half in halves) and",
        "return all(len(half) >= 1 for half in halves) and",
        f"{PRIVATE}a_few_rows_that_lack_a_value_are_no_group_of_their_own",
    ),
    "rows in a report": Guard(
        "report/content.py",
        "n_cases if explainer.private is None else 0",
        "n_cases",
        "test_private.py::test_a_private_report_shows_no_row",
    ),
}

HEARD = "../test_interrupt.py::test_no_step_grows_with_the_number_of_rows"
STALLS = {
    "a wide table": Guard(
        "_batch/forecast.py",
        "PER_FREE = 3e-8",
        "PER_FREE = 0.0",
        "../test_forecast.py::test_a_wide_table_is_told_of_before_the_work",
    ),
    "a long fit": Guard(
        "_batch/forecast.py",
        "    if seconds < LONG:\n        return ()\n    metric",
        "    if True:\n        return ()\n    metric",
        "../test_forecast.py::test_a_long_fit_is_told_of_before_the_model_is_asked",
    ),
    "many immutable features": Guard(
        "_batch/infeasible.py",
        "MOST_SINGLY = 32",
        "MOST_SINGLY = 9999",
        "test_time.py::test_what_was_not_released_is_said",
    ),
    "memory and Ctrl-C while a wide table is explained": Guard(
        "_batch/searches.py",
        "MOST_NUMBERS = 1 << 22",
        "MOST_NUMBERS = 1 << 40",
        "../test_search.py::test_parts_hold_every_row_once_and_of_wide_tables_fewer_rows",
    ),
    "memory while a wide table is walked": Guard(
        "_batch/searches.py",
        "min(of_pairs, MOST_NUMBERS // (max(LEAST_POINTS, n_first) * width))",
        "of_pairs",
        "../test_search.py::test_of_wide_tables_fewer_rows_are_searched_together",
    ),
    "Ctrl-C while balls are covered": Guard(
        "_base/threads.py",
        "pool.shutdown(cancel_futures=True)",
        "pool.shutdown()",
        "../test_fast_cover.py::test_after_an_error_the_chunks_not_yet_begun_are_dropped[2-KeyboardInterrupt]",
    ),
    "Ctrl-C taken for an error of the model": Guard(
        "_rows/isolate.py",
        "    except Exception as error:\n        answer = error",
        "    except BaseException as error:\n        answer = error",
        "../test_interrupt.py::test_ctrl_c_ends_it_and_leaves_no_process[a slow model]",
    ),
}
