"""Prints figures of the code's layout and names beside their goals; tests/test_house.py holds them.

python tools/house_figures.py              # the figures
python tools/house_figures.py --verbose    # and what is behind each of them
"""

import ast
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "priory"
VERBS_IN_ED = {"bleed", "breed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
NOT_A_VERB_OR_NOUN = re.compile(
    "begun|built|chosen|done|drawn|fallen|felt|found|given|gone|grown|heard|held|kept|known|laid|learnt|led|left|lent|lost|"
    "made|meant|met|paid|said|seen|sent|shown|spent|spoken|taken|taught|thought|told|unknown|unseen|untold|won|written|"
    "again|alone|apart|better|few|least|many|most|much|right|silent|together|worse|wrong"
)
Tree = dict[str, ast.Module]  # module name -> its syntax tree


@dataclass(frozen=True)
class Figure:
    """One measured value with its goal (the most it may be) and the places that it counts."""

    name: str
    value: float
    goal: float
    places: list[str]

    def __str__(self) -> str:
        mark = "ok   " if self.value <= self.goal else "above"
        return f"{mark} {self.value:>5g}  (at most {self.goal:g})  {self.name}"


def read_modules(package: Path = PACKAGE) -> Tree:
    """The syntax tree of every module, by its dotted name; a package is named as its folder."""
    trees = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def read_layers(test: Path = ROOT / "tests" / "test_layers.py") -> list[str]:
    """The folders from the lowest layer to the highest: the list FOLDERS of the test."""
    for node in ast.parse(test.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FOLDERS":
            return ast.literal_eval(node.value)
    raise LookupError(f"{test} has no list FOLDERS")


def walk_runtime(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below this one except those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield child
        yield from walk_runtime(child)


def find_imports(tree: ast.Module, modules: Tree) -> set[str]:
    """The modules of the package that a module imports, at the top or inside a function."""
    found = set()
    for node in walk_runtime(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
    return found & modules.keys()


def measure_entries(package: Path = PACKAGE) -> Figure:
    """Entries that `ls src/priory` shows, without what is generated."""
    entries = sorted(p.name for p in package.iterdir() if p.name != "__pycache__" and p.suffix not in (".c", ".so"))
    return Figure("entries in the top folder", len(entries), 28, entries)


def measure_cycles(modules: Tree) -> Figure:
    """Import cycles; each is cut where it was found, to look for the next."""
    graph = {name: find_imports(tree, modules) - {name} for name, tree in modules.items()}
    cycles = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
            return Figure("import cycles", len(cycles), 0, cycles)
        except CycleError as error:
            cycle = error.args[1]  # each imports the one before it
            cycles.append(" <- ".join(cycle))
            graph[cycle[1]].discard(cycle[0])


def measure_upward_imports(modules: Tree) -> Figure:
    """Imports from a folder that stands later in the list of layers."""
    layers = read_layers()
    places = []
    for name, tree in modules.items():
        for imported in sorted(find_imports(tree, modules)):
            if "." in name and "." in imported:  # the package itself hands out names of every layer, when asked
                here, there = name.split(".")[1], imported.split(".")[1]
                if layers.index(there) > layers.index(here):
                    places.append(f"{name} imports {imported}")
    return Figure("imports from a higher layer", len(places), 0, places)


def find_definitions(tree: ast.Module) -> set[str]:
    """Public names that a module defines at its top level."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def find_repeated_names(modules: Tree) -> dict[str, list[str]]:
    """Public names that are defined in two or more modules, with those modules."""
    homes = defaultdict(list)
    for module, tree in modules.items():
        for name in sorted(find_definitions(tree)):
            homes[name].append(module)
    return {name: where for name, where in sorted(homes.items()) if len(where) > 1}


def measure_repeated_names(modules: Tree) -> Figure:
    repeated = find_repeated_names(modules)
    places = [f"{name}: {', '.join(where)}" for name, where in repeated.items()]
    return Figure("public names defined in two or more modules", len(repeated), 15, places)


def is_bare_participle(name: str) -> bool:
    """Whether a function's name is one word that says neither what is done nor what is returned."""
    word = name.strip("_")
    regular = "_" not in word and word.endswith("ed") and len(word) > 4 and word not in VERBS_IN_ED
    return regular or NOT_A_VERB_OR_NOUN.fullmatch(word) is not None


def find_functions(modules: Tree) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, node


def measure_participles(modules: Tree) -> Figure:
    places = [f"{module}:{f.lineno} {f.name}" for module, f in find_functions(modules) if is_bare_participle(f.name)]
    return Figure("functions named by a bare participle or adverb", len(places), 20, places)


def measure_any(modules: Tree) -> Figure:
    """Share of the annotations of parameters and returned values that are exactly Any, in per cent."""
    places, total = [], 0
    for module, function in find_functions(modules):
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        hints = {p.arg: p.annotation for p in parameters if p is not None} | {"return": function.returns}
        hints = {name: hint for name, hint in hints.items() if hint is not None}
        total += len(hints)
        places += [
            f"{module}:{function.lineno} {function.name}({name})"
            for name, hint in hints.items()
            if ast.unparse(hint) in ("Any", "typing.Any")
        ]
    return Figure("annotations that are exactly Any, per cent", round(100 * len(places) / max(1, total), 1), 4, places)


def find_exported_estimators() -> dict[str, type]:
    """The classes with a method `fit` that priory and priory.naive_bayes export."""
    doors = [importlib.import_module(name) for name in ("priory", "priory.naive_bayes")]
    names = {f"{door.__name__}.{name}": getattr(door, name) for door in doors for name in door.__all__}
    return {name: found for name, found in names.items() if isinstance(found, type) and hasattr(found, "fit")}


def measure_undocumented_attributes() -> Figure:
    section = re.compile(r"^ *Attributes\n *-{10}$", re.MULTILINE)
    lacking = [name for name, found in find_exported_estimators().items() if not section.search(found.__doc__ or "")]
    return Figure("exported estimators without an Attributes section", len(lacking), 0, lacking)


MEASURES = {
    "entries": lambda modules: measure_entries(),
    "cycles": measure_cycles,
    "upward imports": measure_upward_imports,
    "repeated names": measure_repeated_names,
    "participles": measure_participles,
    "Any": measure_any,
    "attributes": lambda modules: measure_undocumented_attributes(),
}

if __name__ == "__main__":
    trees = read_modules()
    for measure in MEASURES.values():
        print(figure := measure(trees))
        if "--verbose" in sys.argv:
            print(*(f"        {place}" for place in figure.places), sep="\n")
