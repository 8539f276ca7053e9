"""The architecture: a folder is a layer, and imports point from later folders of this list to earlier ones."""

import ast

import pytest

from paths import ROOT
from priory import families

SOURCE = ROOT / "src" / "priory"

FOLDERS = [
    "errors",
    "core",
    "text",
    "families",
    "tables",
    "model",
    "bayes",
    "regression",
    "evaluation",
    "calibration",
    "learning",
    "estimators",
    "naive_bayes",
    "plots",
    "leakage",
    "export",
    "storage",
    "sources",
    "workflows",
    "service",
    "cli",
    "__main__",
]
ALLOWED_ONLY_IN = {
    "sklearn": {"regression", "calibration", "estimators", "naive_bayes", "leakage", "export", "workflows"},
    "narwhals": {"tables", "regression", "leakage"},
    "cryptography": {"storage"},
    "jinja2": {"export", "service"},
    "matplotlib": {"plots"},
    "onnx": {"export"},
    "jax": {"regression"},
    "blackjax": {"regression"},
    "optax": {"regression"},
    "arviz_stats": {"regression"},
    "click": {"cli"},
    "duckdb": {"sources"},
    "openpyxl": {"sources"},
    "sqlite3": {"sources", "service"},
    "starlette": {"service"},
    "uvicorn": {"service"},
    "h11": {"service"},
    "msgspec": {"service"},
    "httpx": {"service"},
    "mlflow": {"workflows"},
    "shap": {"model"},
    "dask": {"workflows"},
    "distributed": {"workflows"},
    "pyspark": {"workflows"},
    "fsspec": {"sources"},
    "fcntl": {"storage"},
    "msvcrt": {"storage"},
    "psutil": {"core"},
    "resource": set(),
    "termios": set(),
}


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def folder_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_folder_is_in_the_list():
    assert {folder_of(p) for p in modules()} == set(FOLDERS)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    here = FOLDERS.index(folder_of(path))
    for name in imports(path):
        package, *rest = name.split(".")
        if package == "priory" and rest and rest[0] in FOLDERS:
            assert FOLDERS.index(rest[0]) <= here, f"{folder_of(path)} reaches up to {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_dependencies_stay_in_their_folder(path):
    for name in imports(path):
        homes = ALLOWED_ONLY_IN.get(name.split(".")[0])
        assert homes is None or folder_of(path) in homes, f"{folder_of(path)} imports {name}"


def find_family_tests(path):
    """The families that a module asks for by class: `isinstance(x, Gaussian)`, `case Gaussian()`, `{Gaussian: ...}`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        elif isinstance(node, ast.Dict):
            asked = ast.Tuple([key for key in node.keys if isinstance(key, ast.Name | ast.Constant)])
        else:
            continue
        names = {name.id for name in ast.walk(asked) if isinstance(name, ast.Name)}
        names |= {str(name.value) for name in ast.walk(asked) if isinstance(name, ast.Constant)}
        yield from names & set(families.__all__) - {"Family"}


def test_only_families_depend_on_which_family_it_is():
    found = {
        (str(path.relative_to(SOURCE)), name)
        for path in modules()
        if folder_of(path) != "families" and path.stem != "receipt_verifier"  # which counts without priory
        for name in find_family_tests(path)
    }
    assert found == {("model/schema.py", "Text")}  # columns of texts are always `Text`


def test_few_modules_own_each_kernel():
    users = {
        (name.split(".")[3], str(path.relative_to(SOURCE)))
        for path in modules()
        for name in imports(path)
        if name.startswith("priory.core._kernel.")
    }
    assert users == {
        ("sparse", "core/sparse_rows.py"),
        ("products", "core/exact_products.py"),
        ("gamma", "core/logspace.py"),
        ("rows", "calibration/logit_terms.py"),
        ("rows", "calibration/corrections.py"),
        ("rows", "families/open_columns.py"),
        ("rows", "model/open_table.py"),
        ("trees", "calibration/logit_terms.py"),
        ("trees", "calibration/tree_member.py"),
        ("exact", "core/column_kernels.py"),
        ("exact", "core/exact_sums.py"),
        ("tables", "core/column_kernels.py"),
        ("tables", "core/value_counts.py"),  # codes, without what sums columns
        ("text", "text/token_bags.py"),
        ("text", "text/vocabulary.py"),
        ("text", "text/text_model.py"),
        ("text", "text/token_features.py"),
        ("text", "text/tokenizer.py"),
    }
