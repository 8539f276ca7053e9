"""Queries: DuckDB, SQLite and PostgreSQL answer as the model does."""

import numpy as np
import pytest

import priory as pr
import query_databases as databases
from exported_models import HOSTILE, TABLES, make_model, make_rows
from priory import naive_bayes as nb
from priory import workflows
from priory.errors import DataError
from priory.export.plan_sources import compile_plan
from priory.export.sql import DIALECTS, write_sql

TABLE = 'ro"ws; DROP'


@pytest.fixture(scope="module")
def ask():
    """Run a query in a database: `ask(dialect, query, columns, numbers, rows)`."""
    with databases.start_postgres() if databases.find_postgres() else databases.contextlib.nullcontext() as socket:

        def run(dialect, *given):
            if dialect == "postgres" and socket is None:
                pytest.skip("no PostgreSQL server")
            if dialect == "duckdb":
                pytest.importorskip("duckdb")
                return databases.ask_duckdb(*given)
            return databases.ask_sqlite(*given) if dialect == "sqlite" else databases.ask_postgres(socket, *given)

        yield run


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("calibrate", ["loo", False])
@pytest.mark.parametrize("name", TABLES)
def test_databases_answer_as_the_model_does(ask, name, calibrate, dialect):
    model, (asked, rows) = make_model(name, calibrate), make_rows(name)
    numbers = [c for c in asked.columns if asked[c].dtype.kind == "f"]
    query = write_sql(compile_plan(model), TABLE, dialect)
    if name == "dates":
        query = query.replace('"when"', 'CAST("when" AS TIMESTAMP)') if dialect != "sqlite" else query
    found = ask(dialect, query, TABLE, list(asked.columns), numbers, rows)
    probabilities = np.array([[float(row[f"P({label})"]) for label in model.classes_] for row in found])
    np.testing.assert_allclose(probabilities, model.predict_proba(asked), atol=1e-9)
    sure = np.sort(probabilities, axis=1)[:, -1] - np.sort(probabilities, axis=1)[:, -2] > 1e-9
    labels = np.array([str(row["prediction"]) for row in found])
    assert (labels == model.predict(asked).astype(str))[sure].all()


def test_names_and_labels_are_quoted():
    query = write_sql(compile_plan(make_model("mixed", False)), TABLE, "postgres")
    assert '"""; DROP TABLE rows; --"' in query
    assert "'''; DROP TABLE rows; --'" in query
    assert f" {HOSTILE}" not in query
    assert "`; DROP" not in write_sql(compile_plan(make_model("mixed", False)), "a`; DROP", "bigquery").replace(
        "\\`", ""
    )


def test_a_model_of_one_class_has_a_query(ask):
    model = pr.NaiveBayes().fit([{"n": 1.0}, {"n": 2.0}] * 10, ["only"] * 20)
    for dialect in ("duckdb", "sqlite", "postgres"):
        [row] = ask(dialect, write_sql(compile_plan(model), TABLE, dialect), TABLE, ["n"], ["n"], [{"n": 1.5}])
        assert float(row["P(only)"]) == 1.0


@pytest.mark.parametrize("kind", [nb.GaussianNB, nb.BernoulliNB, nb.MultinomialNB, nb.ComplementNB, nb.CategoricalNB])
def test_files_of_drop_ins_have_queries(ask, kind, tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    X = rng.poisson(1.0 + labels[:, None], (60, 3)).astype(float)
    model, asked = kind().fit(X, labels), np.concatenate([X[:20], [[0, 40, 1]]])
    pr.save(model, tmp_path / "model.priory")
    query = workflows.export(tmp_path / "model.priory", "sql", dialect="sqlite", table=TABLE).files["sql"].decode()
    names = ["x0", "x1", "x2"]
    found = ask("sqlite", query, TABLE, names, names, [dict(zip(names, row, strict=True)) for row in asked.tolist()])
    probabilities = [[row[f"P({label})"] for label in range(3)] for row in found]
    np.testing.assert_allclose(probabilities, model.predict_proba(asked), atol=1e-9)


@pytest.mark.parametrize(
    ("dialect", "names"), [("duckdb", ["Size", "size"]), ("postgres", [f"{'n' * 63}1", f"{'n' * 63}2"])]
)
def test_names_that_a_database_takes_for_one_are_refused(dialect, names):
    plan = compile_plan(pr.NaiveBayes().fit([dict.fromkeys(names, 1.0), dict.fromkeys(names, 2.0)] * 10, [0, 1] * 10))
    with pytest.raises(DataError, match=f"are the same name to {dialect}"):
        write_sql(plan, "rows", dialect)
    assert write_sql(plan, "rows", "sqlite" if dialect == "postgres" else "postgres")


def test_a_query_without_training_rows_is_shorter():
    model = make_model("mixed", "loo")
    full, less = (write_sql(compile_plan(model, rows), "rows", "duckdb") for rows in (True, False))
    assert "training rows" in full.splitlines()[1]
    assert "No training row is in it" in less
    assert "priory_kept" not in less


def test_what_sql_cannot_say_is_refused_in_one_line():
    plan = compile_plan(pr.TextClassifier().fit(["win cash", "lunch at noon"] * 10, ["spam", "ham"] * 10))
    with pytest.raises(DataError, match="holds texts, which SQL cannot split into words"):
        write_sql(plan, "rows", "duckdb")
    with pytest.raises(DataError, match="use one of duckdb, postgres, sqlite, bigquery"):
        write_sql(compile_plan(make_model("labels", False)), "rows", "oracle")
    assert list(DIALECTS) == ["duckdb", "postgres", "sqlite", "bigquery"]
