"""Every command: explain, audit, map; rows, rules and formats."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import one_line
from onbmacf.datasets import load_heart
from onbmacf.io import read_table


def test_without_arguments_the_embedded_data_are_explained(run):
    code, out, err = run("explain", "--format", "sentences")
    assert code == 0
    said = err.splitlines()
    assert said[0] == (
        "Using the embedded heart data: 462 men; a 32-16 network predicts who is at risk. Age must stay as it is."
    )
    assert said[1] == "Explaining the first 10 of 127 rows; choose others with --rows 3,17 or --rows all."
    assert out.count("the model would say 'healthy' instead of 'at risk'") == 10


def test_a_model_and_immutables_of_ones_own_for_the_embedded_data(run, people):
    Path("rule_of_ldl.py").write_text(
        "import numpy as np\ndef predict(rows):\n    return np.where(rows['ldl'] > 5, 'at risk', 'healthy')\n",
        encoding="utf-8",
    )
    words = ("--model", "rule_of_ldl:predict", "--immutable", "sbp", "--rows", "0", "--format", "sentences")
    code, out, err = run("explain", *words)
    assert code == 0
    assert "Using the embedded heart data: 462 men; rule_of_ldl:predict predicts who is at risk.\n" in err
    assert out.startswith("Row 0: If ldl were ")


def test_a_model_is_trained_and_the_output_says_so(run, people):
    code, out, err = run("explain", people, "--target-column", "income", "--rows", "3,17", "--format", "sentences")
    assert code == 0
    assert "No model was given: a network (32-16) was trained on 'income' with 120 of 160 rows" in err
    assert [line.split(":")[0] for line in out.splitlines()] == ["Row 3", "Row 17"]
    assert "2 rows: 2 found" in err
    assert re.search(
        r"; the model is right on \d+\.\d % of the other 40; always guessing '\w+' is right on \d+\.\d %\. What", err
    )
    assert "not better" not in err


def test_a_trained_model_that_is_no_better_than_guessing_is_a_warning_also_in_the_report(run, people):
    table = read_table(people)
    tested = np.random.default_rng(0).permutation(len(table))[120:]
    table.loc[tested, "income"] = table.loc[tested, "income"].map({"high": "low", "low": "high"})
    table.to_csv(people, index=False)
    code, out, err = run("audit", people, "--target-column", "income", "--most", "5", "--out", "report.md")
    assert code == 0, err
    said = "the trained model, a network (32-16), is not better than always guessing the most frequent label: "
    said += "trained on 120 rows, the model is"
    assert f"note: {said}" in err
    assert f"- Warning: {said}" in out
    assert f"- Warning: {said}" in Path("report.md").read_text(encoding="utf-8")


def test_each_format_says_the_same(run, people, tmp_path):
    base = ("explain", people, "--target-column", "income", "--rows", "0-9", "--n", "2")
    assert run(*base, "--out", tmp_path / "answers.csv")[0] == 0
    frame = read_table(tmp_path / "answers.csv")
    document = json.loads(run(*base, "--format", "json")[1])["answers"]
    sentences = run(*base, "--format", "sentences")[1].splitlines()
    table = run(*base, "--format", "table")[1]
    markdown = run(*base, "--format", "markdown")[1]
    assert [entry["row"] for entry in document] == list(range(10))
    found = [(entry["row"], one) for entry in document for one in entry["counterfactuals"]]
    assert len(frame) == len(sentences) == len(found) == len(markdown.splitlines()) - 2
    for line, (row, one) in zip(frame.itertuples(), found, strict=True):
        assert (line.row, line.to) == (row, one["label"])
        assert line.distance == one["distance"]
        assert line.pay == one["values"]["pay"]
    assert document[0]["counterfactuals"][0]["changes"][0]["feature"] in table


def test_rows_by_number_by_name_by_file_and_by_prediction(run, people):
    table = pd.read_csv(people)
    table.insert(0, "id", [f"P{place}" for place in range(len(table))])
    table.to_csv("named.csv", index=False)
    table.iloc[[5, 9]].to_csv("some.csv", index=False)
    base = ("explain", "named.csv", "--target-column", "income", "--id-column", "id", "--format", "json")
    rows = lambda *words: [entry["row"] for entry in json.loads(run(*base, *words)[1])["answers"]]  # noqa: E731
    assert rows("--rows", "5,9") == ["P5", "P9"]
    assert rows("--ids", "P5,P9") == ["P5", "P9"]
    assert rows("--ids", "P5", "--ids", "P9") == ["P5", "P9"]
    assert rows("--rows-file", "some.csv") == ["P5", "P9"]
    every = json.loads(run(*base, "--rows", "all")[1])["answers"]
    high = [entry["row"] for entry in every if entry["label"] == "high"]
    assert rows("--predicted", "high") == high
    assert rows("--predicted", "high", "--rows", "all") == high
    assert rows("--predicted", "high", "--rows", "0-30") == [name for name in high if int(name[1:]) <= 30]
    assert rows("--predicted", "high", "--ids", ",".join(high[:2])) == high[:2]
    low = next(entry["row"] for entry in every if entry["label"] == "low")
    code, _, err = run(*base, "--predicted", "high", "--ids", low)
    assert (code, "the model says 'high' of none of the rows" in err) == (2, True)
    code, _, err = run(*base, "--predicted", "high", "--rows-file", "some.csv")
    assert (code, "leave it or --rows-file out" in err) == (2, True)
    assert rows("--target", "high") == [entry["row"] for entry in every if entry["label"] == "low"][:10]


def test_rows_keep_their_number_in_the_file_when_others_are_left_out(run, people):
    table = pd.read_csv(people)
    table.loc[[0, 4], "pay"] = np.nan
    table.to_csv("gaps.csv", index=False)
    base = ("explain", "gaps.csv", "--target-column", "income", "--format", "json")
    code, out, err = run(*base, "--drop-missing", "--rows", "3-6")
    assert "Left out 2 rows" in err
    assert [entry["row"] for entry in json.loads(out)["answers"]] == [3, 5, 6]
    code, out, err = run(*base, "--drop-missing", "--rows", "4")
    one_line(code, err, "names 4, which was left out")


def test_immutables_rules_and_targets_reach_the_explainer(run, people):
    Path("rules.toml").write_text('max_changes = 1\n[features.pay]\ndirection = "up"\n', encoding="utf-8")
    words = ("--target", "high", "--immutable", "age,sex", "--rules", "rules.toml", "--rows", "all", "--format", "json")
    _, out, _ = run("explain", people, "--target-column", "income", *words)
    document = json.loads(out)["answers"]
    assert {entry["status"] for entry in document} <= {"found", "already", "infeasible"}
    for entry in document:
        for found in entry["counterfactuals"]:
            if found["relaxation"] != "immutability":
                assert {change["feature"] for change in found["changes"]} <= {"pay", "town"}
            assert found["label"] == "high"


def test_map_build_info_and_explain_with_it(run, people):
    base = (people, "--target-column", "income")
    assert run("map", "build", *base, "--immutable", "sex", "--out", "people.onb")[0] == 0
    code, out, _ = run("map", "info", "people.onb")
    assert code == 0
    assert re.search(r"^rows +160$", out, flags=re.M)
    assert re.search(r"^column sex +binary, immutable$", out, flags=re.M)
    assert re.search(r"^label 'high' +\d+ rows in \d+ balls$", out, flags=re.M)
    fresh = run("explain", *base, "--immutable", "sex", "--rows", "0-9", "--format", "json")[1]
    loaded = run("explain", *base, "--map", "people.onb", "--rows", "0-9", "--format", "json")[1]
    assert loaded == fresh
    near = ("--plausibility", "0", "--rows", "0-9", "--format", "json")
    assert (
        run("explain", *base, "--map", "people.onb", *near)[1] == run("explain", *base, "--immutable", "sex", *near)[1]
    )
    Path("rules.toml").write_text("max_changes = 1\n", encoding="utf-8")
    asked = ("--immutable", "age", "--rules", "rules.toml", *near)
    assert run("explain", *base, "--map", "people.onb", *asked)[1] == run("explain", *base, *asked)[1] != fresh
    _, _, err = run("explain", *base, "--map", "people.onb", "--threshold", "0.3", *near)
    assert "--threshold, --classes and --between are ignored: a map keeps those it was built with.\n" in err


@pytest.mark.parametrize("limit", [("--max-model-rows", "40"), ("--max-model-calls", "4")])
def test_explain_keeps_to_the_limits_of_what_one_row_may_cost(run, people, limit):
    # Algorithm 3, because the refined search reads this model and asks it once.
    command = (
        "explain",
        people,
        "--target-column",
        "income",
        "--rows",
        "0-1",
        "--format",
        "json",
        "--strategy",
        "paper",
    )
    code, out, err = run(*command, *limit)
    assert code == 0, err
    name = limit[0][2:].replace("-", "_")
    assert [name in answer["reason"] for answer in json.loads(out)["answers"]] == [True, True]
    assert name not in run(*command)[1]
    code, out, err = run(*command, limit[0], "0")
    assert (code, out) == (2, "")
    assert err.endswith(f"onbmacf: {limit[0]} must be a whole number of at least 1, got 0.\n")


def test_audit_writes_a_report_and_says_its_findings(run, people):
    words = ("--target-column", "income", "--target", "high", "--by", "sex,age", "--most", "50")
    code, out, err = run("audit", people, *words)
    assert code == 0, err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Burden by sex" in page
    assert "Burden by age" in page
    assert "No model was given" in page
    assert "onbmacf audit" in page
    assert out.startswith("- No model was given")
    assert "\n- A change that leads to the decision" in out
    assert (
        run(
            "audit",
            people,
            "--target-column",
            "income",
            "--out",
            "r.md",
            "--immutable",
            "sex",
            "--most",
            "30",
            "--actions",
            "0",
        )[0]
        == 0
    )
    text = Path("r.md").read_text(encoding="utf-8")
    assert "## Burden by sex" in text
    assert "30 rows, explained with a map" in text
    assert not list(Path().glob("*.parts"))


RULES = """
def january(rows):
    return (rows["pay"] > 55).map({True: "high", False: "low"})


def june(rows):
    return (rows["pay"] + 10 * (rows["sex"] == "f") > 55).map({True: "high", False: "low"})
"""


def test_audit_compares_two_dates_of_a_model(run, people):
    Path("payrules.py").write_text(RULES)
    words = ["--target-column", "income", "--target", "high", "--by", "sex", "--rows", "all", "--actions", "0"]
    models = ["--model", "payrules:january", "--against", "payrules:june"]
    code, _, err = run("audit", people, *models, *words, "--out", "r.md")
    assert code == 0, err
    table = pd.read_csv(people)
    text = Path("r.md").read_text(encoding="utf-8").split("## Compared with payrules:june")[1]
    women = table[table["sex"] == "f"]
    gained, before = int(women["pay"].between(45, 55, inclusive="right").sum()), (women["pay"] > 55).mean()
    line = next(line for line in text.splitlines() if line.startswith("| f |"))
    assert [cell.strip() for cell in line.strip("| ").split("|")][:4] == ["f", str(len(women)), str(gained), "0"]
    assert f"{100 * before:.1f} %" in line
    share = f"{100 * gained / len(women):.1f} %"
    did = "get another decision from the other model"
    assert f"{share} of the group 'f' {did}, against 0.0 % of 'm': a medium difference" in text
    assert "nobody can lose" not in text  # rows that january does not refuse are among them


def test_a_thousand_groups_one_group_and_missing_true_labels_are_a_sentence_each(run, people):
    Path("payrules.py").write_text(RULES)
    table = pd.concat([pd.read_csv(people)] * 7, ignore_index=True)
    table = table.assign(village=[f"v{place % 1000}" for place in range(len(table))], world="one")
    table.loc[::3, "income"] = None
    table.to_csv("many.csv", index=False)
    words = ["--model", "payrules:june", "--target-column", "income", "--target", "high", "--actions", "0"]
    code, out, err = run("audit", "many.csv", *words, "--by", "village,world", "--most", "30", "--out", "r.html")
    assert code == 0, err
    assert "By village: no two groups have at least 20 rows" in out or "By village: no difference" in out
    assert "By world: all rows are in one group, so there is nothing to compare." in out
    known = f"{table['income'].notna().sum():,} of {len(table):,} rows"
    assert f"How often decisions are right is counted on {known}" in out
    page = Path("r.html").read_text(encoding="utf-8")
    assert "village has 1,000 groups: the 7 largest are kept apart, the others are one group, (other)." in page
    assert len(page) < 400_000
    code, out, err = run("audit", "many.csv", *words, "--most", "5", "--out", "r.md")
    assert code == 0, err
    assert "No column was named to compare groups by" in Path("r.md").read_text(encoding="utf-8")


def test_a_model_trained_here_is_compared_with_true_labels_it_has_not_seen(run, people):
    table = pd.read_csv(people)
    code, out, err = run(
        *("audit", str(people), "--target-column", "income", "--target", "high", "--by", "age", "--bands", "age=30,50"),
        *("--most", "20", "--actions", "0", "--cases", "1", "--out", "r.md"),
    )
    assert code == 0, err
    n_seen = int(0.75 * len(table))
    said = f"How often decisions are right is counted on {len(table) - n_seen:,} of {len(table):,} rows"
    assert said in out
    text = Path("r.md").read_text(encoding="utf-8")
    rates = text.partition("How often decisions are right, by age")[2].partition("###")[0]
    lines = [[cell.strip() for cell in line.strip("| ").split("|")] for line in rates.split("\n|")[3:6]]
    assert [line[0] for line in lines] == ["below 30", "30 to below 50", "50 and above"]
    assert [sum(int(line[at]) for line in lines) for at in (1, 2)] == [len(table) - n_seen, n_seen]
    for words, fault in (("age", "takes column=edge"), ("pay=3", "--bands names 'pay', by which nothing is grouped")):
        code, _, err = run("audit", str(people), "--target-column", "income", "--by", "age", "--bands", words)
        assert code != 0
        assert fault in " ".join(err.split())


def test_heart_is_the_default_of_audit(run, people):
    table, _ = load_heart()
    code, out, _ = run("audit", "--most", "20", "--cases", "1", "--actions", "0")
    assert code == 0
    assert "The most changed features are" in out
    assert str(len(table)) in Path("report.html").read_text(encoding="utf-8")
