"""The architecture: imports point downwards only."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "priory"

LAYERS = [  # from the ground up; a module may import from lower layers and from its own
    {"errors", "logspace", "statistics", "_kernel", "counting", "threads", "probability", "documents", "descent"}
    | {"widths"},
    {"families", "tokens", "words", "buckets", "bags", "tokensets", "vocabularies"},
    {"averaging", "table", "schema", "model", "ledger", "telling"}
    | {"codelength", "likelihoods", "space", "hypotheses", "continuum"}
    | {"products", "linear", "design", "weights", "logistic", "sampling"},
    {"folds", "strengths", "plots"}
    | {"tempering", "refinement", "dependence", "encoding", "corrections"}
    | {"intervals", "curves", "reliability", "scores", "scorecard", "decisions", "neighbours"},
    {"estimator", "judged", "classifier", "naive_bayes", "text"}
    | {"optimal", "discretise", "trees"}
    | {"regression", "logistic_regression"}
    | {"calibration", "calibrated"},
    {"leakage"},
    {"data", "storage", "reporting", "onnx_export"},
    {"sources", "streaming", "cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
ALLOWED_ONLY_IN = {
    "sklearn": {"estimator", "judged", "classifier", "naive_bayes", "text", "cli"}
    | {"optimal", "discretise", "trees"}
    | {"regression", "logistic_regression"}
    | {"calibration", "calibrated", "reporting", "leakage"},
    "cryptography": {"storage"},
    "jinja2": {"reporting"},
    "narwhals": {"table", "design", "leakage"},
    "matplotlib": {"plots"},
    "onnx": {"onnx_export"},
    "jax": {"sampling"},
    "blackjax": {"sampling"},
    "optax": {"sampling"},
    "arviz_stats": {"sampling"},
}


def modules():
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def part_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downwards(path):
    here = LEVEL[part_of(path)]
    for name in imports(path):
        package, *rest = name.split(".")
        if package == "priory" and rest:
            assert LEVEL[rest[0]] <= here, f"{part_of(path)} reaches up to {name}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_dependencies_stay_in_their_layer(path):
    for name in imports(path):
        homes = ALLOWED_ONLY_IN.get(name.split(".")[0])
        assert homes is None or part_of(path) in homes


@pytest.mark.parametrize(("kernel", "owner"), [("compiled", "counting"), ("text", "tokens")])
def test_one_module_owns_each_kernel(kernel, owner):
    users = {part_of(p) for p in modules() for name in imports(p) if name == f"priory._kernel.{kernel}"}
    assert users == {owner}


def test_nobody_else_imports_the_kernels():
    users = {part_of(p) for p in modules() for name in imports(p) if name.startswith("priory._kernel")}
    assert users == {"counting", "tokens"}
