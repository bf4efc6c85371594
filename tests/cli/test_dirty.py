"""A wide table as people have them: from the CSV to sentences and a report, quickly, and nothing set aside unsaid."""

from time import process_time

import numpy as np
import pandas as pd
import pytest


def dirty(n):
    """40 columns: identifiers, codes, free text, dates as text, three classes, gaps."""
    random, place = np.random.default_rng(0), np.arange(n)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 3000, n), "D")
    columns = {
        "policy_id": [f"P-{number:06d}" for number in random.permutation(n)],
        "customer_no": random.permutation(n) + 100_000,
        "name": [f"Ann {number} Moss" for number in place],
        "note": [f"called on {number % 28 + 1}.5., ref {random.integers(10**6)}" for number in place],
        "postcode": random.integers(1000, 99_999, n),
        "signed": days.strftime("%Y-%m-%d"),
        "born": (days - pd.Timedelta(12_000, "D")).strftime("%Y-%m-%d"),
        "last_contact": days.strftime("%d/%m/%Y"),
        "age": random.integers(18, 85, n),
        "years_insured": np.where(random.random(n) > 0.03, random.integers(0, 30, n), np.nan),
        "past_claims": random.poisson(0.8, n),
        "km_per_year": random.integers(3, 50, n) * 1000,
        "discount": random.choice([0, 5, 10, 15, 20], n),
        "premium": random.gamma(4, 120, n).round(2),
        "income": np.where(random.random(n) > 0.08, random.gamma(5, 8000, n).round(-2), np.nan),
        "sex": random.choice(["f", "m"], n),
        "fuel": random.choice(["petrol", "diesel", "electric", ""], n),
        "brand": random.choice([f"brand {number}" for number in range(25)], n),
        "power_kw": random.integers(40, 250, n),
        "constant": 1,
    }
    columns |= {f"score_{at}": random.normal(50, 12, n).round(1) for at in range(15)}
    columns |= {f"flag_{at}": random.choice([0, 1], n) for at in range(4)}
    table = pd.DataFrame(columns)
    risk = 0.5 * table["past_claims"] + 0.01 * table["power_kw"] + 0.03 * table["score_0"] - 0.03 * table["discount"]
    table["tier"] = pd.qcut(risk, [0, 0.45, 0.8, 1], labels=["low", "middle", "high"]).astype(str)
    return table


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The table as a file."""
    path = tmp_path_factory.mktemp("dirty") / "dirty.csv"
    dirty(1500).to_csv(path, index=False)
    return path


SET_ASIDE = ("policy_id", "customer_no", "name", "note", "postcode", "signed", "born", "last_contact")


def test_first_sentences_of_a_wide_dirty_table(run, file):
    started = process_time()
    code, out, err = run("explain", file, "--target-column", "tier", "--format", "sentences")
    assert process_time() - started < 20
    assert code == 0, err
    assert len(out.splitlines()) == 10
    assert not any(f" {name} were " in out for name in SET_ASIDE)
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert all(any(repr(name) in note for note in notes) for name in SET_ASIDE)
    assert "--dates signed,born" in err


@pytest.mark.long
def test_an_audit_of_a_wide_dirty_table(run, file, tmp_path):
    started = process_time()
    words = ("--target-column", "tier", "--most", "200", "--immutable", "age,sex", "--out", tmp_path / "report.html")
    code, _, err = run("audit", file, *words)
    assert process_time() - started < 60
    assert code == 0, err
    assert "200 rows: " in err
    assert all(name in err for name in SET_ASIDE)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1,500 different ones, kept as they are" in page
    assert "Ann 1 Moss" not in page
