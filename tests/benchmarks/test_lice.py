"""LiCE on a few rows: answers keep the published rules, and proofs agree with the program that HiGHS solves."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("onnxruntime", reason="the published networks are onnx files")
pytest.importorskip("onnx", reason="the published networks are onnx files")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def run(data_dir, tmp_path, monkeypatch):
    """Return what runs the script on some rows of a table's first split, and reads what was kept."""
    import lice

    if not (data_dir / "lice" / "credit" / "0").is_dir():
        pytest.skip("what was published with LiCE is not there")

    def made(table, n_rows, *more):
        args = ["--data", str(data_dir / "lice"), "--kept", str(tmp_path), "--tables", table, "--splits", "0"]
        args += ["--rows", str(n_rows), "--fitted", "100", "--seconds", "1", *more]
        monkeypatch.setattr(sys, "argv", ["lice.py", *args])
        lice.main()
        kept = {way: tmp_path / f"{table}-0-{way.replace(' ', '')}-{n_rows}.json" for way in [*lice.WAYS, lice.HIGHS]}
        return {way: pd.DataFrame(json.loads(path.read_text())) for way, path in kept.items()}

    return made


@pytest.mark.long
@pytest.mark.parametrize("table", ["credit", "adult"])
def test_answers_keep_their_rules_and_proofs_agree_with_their_program(run, table, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {place} -->\n<!-- /{place} -->\n" for place in (table, "proofs", "agreement")))
    frames = run(table, 3, "--write", str(page))
    for way in ("default", "dial 0", "proven"):
        assert frames[way]["actionable"].all()
        np.testing.assert_allclose(frames[way]["told"], frames[way]["distance"], rtol=1e-9)
    proven, least = frames["proven"], frames["HiGHS"]["distance"]
    is_proven = proven["kind"] == "nearest"
    assert is_proven.any()
    np.testing.assert_allclose(proven["distance"][is_proven], least[is_proven], atol=1e-3)
    assert (least >= proven["bound"] - 1e-3).all()
    said = capsys.readouterr().out
    assert "| MIO | published |" in said
    assert "| here, `prove=True` | 3 of 3 |" in page.read_text()


def test_what_breaks_a_published_rule_is_seen(data_dir):
    from lice_split import Split, broken

    folder = data_dir / "lice" / "credit" / "0"
    if not folder.is_dir():
        pytest.skip("what was published with LiCE is not there")
    split = Split(folder, "credit")
    before = split.rows.iloc[0]
    worker = {"foreign worker": next(one for one in split.levels("foreign worker") if one != before["foreign worker"])}
    cases = {
        "Age": {"Age": before["Age"] - 1},
        "foreign worker": worker,
        "rises without age": {"Present residence since": before["Present residence since"] + 1},
        "Duration": {"Duration": before["Duration"] + 0.5},
    }
    assert broken(split, before, before) == []
    for what, change in cases.items():
        assert broken(split, before, pd.Series({**before, **change})) == [what]
    older = {"Age": before["Age"] + 1, "Present residence since": before["Present residence since"] + 1}
    assert broken(split, before, pd.Series({**before, **older})) == []
