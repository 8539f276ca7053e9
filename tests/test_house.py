"""The figures of size, layout and names stay within their ceilings (tools/house_figures.py prints them)."""

import ast

import pytest

import house_figures

# The names that may be defined twice: `find`, which every finder of the audit has, the two functions that `priory`
# offers for data in memory and `priory.workflows` for files, what both engines offer for partitioned rows, and what
# every flavour of MLflow has.
ENGINE_FUNCTIONS = {"fit", "forget", "predict", "predict_proba", "evaluate", "audit"}
EXPECTED = {"find", "audit", "report", "load_model"} | ENGINE_FUNCTIONS


@pytest.fixture(scope="module")
def modules():
    return house_figures.read_modules()


@pytest.mark.parametrize("name", house_figures.MEASURES)
def test_figures_are_within_their_ceilings(name, modules):
    above = [figure for figure in house_figures.MEASURES[name](modules) if figure.value > figure.ceiling]
    assert not above, "\n".join(line for figure in above for line in [str(figure), *figure.places])


def test_a_public_name_is_defined_in_one_module(modules):
    repeated = house_figures.find_repeated_names(modules)
    assert {name: where for name, where in repeated.items() if name not in EXPECTED} == {}


@pytest.mark.parametrize("name", ["audit", "report"])
def test_a_workflow_shares_its_name_with_one_function_only(name, modules):
    elsewhere = [m for m in house_figures.find_repeated_names(modules)[name] if not m.startswith("priory.workflows")]
    assert len(elsewhere) == 1, f"{name} is defined in {', '.join(elsewhere)}"


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("told", True),
        ("_observed", True),
        ("encode_labels", False),
        ("log_joint", False),
        ("feed", False),
        ("red", False),
    ],
)
def test_bare_participles_are_recognised(name, bare):
    assert house_figures.is_bare_participle(name) is bare


def test_a_cycle_is_found():
    source = {"priory.a": "import priory.b", "priory.b": "def f():\n    from priory import a", "priory": ""}
    figure = house_figures.measure_cycles({name: ast.parse(text) for name, text in source.items()})
    assert figure.value == 1
