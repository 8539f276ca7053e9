"""Prints figures of the code's size, layout and names beside their ceilings; tests/test_house.py holds them.

python tools/house_figures.py              # the figures
python tools/house_figures.py --verbose    # and what is behind each of them
"""

import ast
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Self

import journeys
from journeys import Figure

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "priory"
VERBS_IN_ED = {"bleed", "breed", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}
NOT_A_VERB_OR_NOUN = re.compile(
    "begun|built|chosen|done|drawn|fallen|felt|found|given|gone|grown|heard|held|kept|known|laid|learnt|led|left|lent|lost|"
    "made|meant|met|paid|said|seen|sent|shown|spent|spoken|taken|taught|thought|told|unknown|unseen|untold|won|written|"
    "again|alone|apart|better|few|least|many|most|much|right|silent|together|worse|wrong"
)
Tree = dict[str, ast.Module]  # module name -> its syntax tree

# Ceilings: lines of code (no blanks, comments, docstrings) and modules of each folder. A change that needs more raises
# the ceiling in its own commit, and says why; a change that needs less lowers it.
FOLDERS: dict[str, tuple[int, int]] = {
    "bayes": (781, 6),
    "calibration": (3_245, 16),
    "cli": (1_731, 14),
    "core": (1_949, 16),
    "estimators": (1_762, 15),
    "evaluation": (986, 12),
    "export": (2_136, 11),
    "families": (2_217, 16),
    "leakage": (1_701, 16),
    "learning": (2_508, 15),
    "model": (2_500, 13),
    "naive_bayes": (876, 5),
    "plots": (806, 6),
    "regression": (1_349, 9),
    "service": (3_886, 23),
    "sources": (2_198, 12),
    "storage": (1_605, 10),
    "tables": (853, 7),
    "text": (2_391, 15),
    "top": (74, 3),
    "workflows": (3_197, 21),
}
MAX_CODE, MAX_MODULES = (sum(limits) for limits in zip(*FOLDERS.values(), strict=True))
MAX_EDGES, MAX_HOOKS, MAX_LATE_IMPORTS = 1_501, 6, 109
MAX_IMPORT_SHARE, MAX_REPEATED_FILES, MAX_CODE_FOR_A_COMMENT, MAX_STUMBLING_WORDS = 10.3, 4, 15.3, 0
# House idiom that a native reader stumbles over, in docstrings and comments.
STUMBLING_WORDS = re.compile(r"\b(?:says of|somebody looks|for people|whatever|that of|those of|told|dawdle|nought)\b")


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


def count_code(source: str, tree: ast.Module) -> tuple[int, int]:
    """Lines of code and of comments; blank lines and docstrings are neither."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [n for n in ast.walk(tree) if isinstance(n, documented) and ast.get_docstring(n, clean=False) is not None]
    docstrings = {line for n in nodes for line in range(n.body[0].lineno, n.body[0].end_lineno + 1)}
    lines = [line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in docstrings]
    comments = sum(line.startswith("#") or "  # " in line for line in lines)
    return sum(bool(line) and not line.startswith("#") for line in lines), comments


@dataclass(frozen=True)
class Sizes:
    """Lines of code, of comments and of import statements, and the number of modules."""

    code: int = 0
    comments: int = 0
    importing: int = 0
    modules: int = 0

    def __add__(self, other: Self) -> Self:
        return Sizes(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def measure_sizes(package: Path = PACKAGE) -> dict[str, Sizes]:
    """The sizes of each folder; what stands in no folder is called "top"."""
    found: dict[str, Sizes] = defaultdict(Sizes)
    for path in sorted(package.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        parts = path.relative_to(package).parts
        lines = sum(n.end_lineno - n.lineno + 1 for n in imports)
        found[parts[0] if len(parts) > 1 else "top"] += Sizes(*count_code(source, tree), lines, 1)
    return dict(found)


def measure_budget() -> list[Figure]:
    """Lines of code and modules by folder, and of all."""
    sizes = measure_sizes()
    total = sum(sizes.values(), Sizes())
    figures = [
        Figure("lines of code", total.code, MAX_CODE, []),
        Figure("modules", total.modules, MAX_MODULES, []),
        Figure(
            "import statements, share of the code, per cent",
            round(100 * total.importing / total.code, 1),
            MAX_IMPORT_SHARE,
            [],
        ),
        Figure("code lines for a comment", round(total.code / total.comments, 1), MAX_CODE_FOR_A_COMMENT, []),
    ]
    for folder, size in sorted(sizes.items()):
        code, modules = FOLDERS.get(folder, (0, 0))
        figures += [Figure(f"{folder}: lines of code", size.code, code, [])]
        figures += [Figure(f"{folder}: modules", size.modules, modules, [])]
    return figures


def measure_edges(modules: Tree) -> Figure:
    edges = [f"{name} imports {other}" for name, tree in modules.items() for other in find_imports(tree, modules)]
    return Figure("imports between modules", len(edges), MAX_EDGES, edges)


def measure_late_imports(modules: Tree) -> Figure:
    """Imports inside of functions: what takes long to import, or only some installations have."""
    places = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, function in find_functions(modules)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return Figure("imports inside functions", len(places), MAX_LATE_IMPORTS, places)


def measure_repeated_files(package: Path = PACKAGE) -> Figure:
    homes = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            homes[path.stem].append(str(path.relative_to(package)))
    places = [", ".join(where) for where in homes.values() if len(where) > 1]
    return Figure("file names that stand in two or more folders", len(places), MAX_REPEATED_FILES, places)


def measure_hooks(modules: Tree) -> Figure:
    """Private methods of a class that a class derived from it defines again."""
    classes = {n.name: n for tree in modules.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    methods = {name: {m.name for m in n.body if isinstance(m, ast.FunctionDef)} for name, n in classes.items()}

    def list_bases(name: str) -> Iterator[str]:
        for base in (ast.unparse(b).split("[")[0].split(".")[-1] for b in classes[name].bases):
            if base in classes and base != name:
                yield base
                yield from list_bases(base)

    hooks = {
        f"{base}.{method}"
        for name in classes
        for base in list_bases(name)
        for method in methods[name] & methods[base]
        if method.startswith("_") and not method.startswith("__")
    }
    return Figure("overridden private hooks", len(hooks), MAX_HOOKS, sorted(hooks))


def measure_words(package: Path = PACKAGE) -> Figure:
    """Words that a native reader stumbles over."""
    places = []
    for path in sorted(package.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            places += [f"{path.relative_to(package)}:{number} {word}" for word in STUMBLING_WORDS.findall(line)]
    return Figure("words of a house idiom", len(places), MAX_STUMBLING_WORDS, places)


def measure_entries(package: Path = PACKAGE) -> Figure:
    """Entries that `ls src/priory` shows, without what is generated."""
    entries = sorted(p.name for p in package.iterdir() if p.name != "__pycache__" and p.suffix not in (".c", ".so"))
    return Figure("entries in the top folder", len(entries), 25, entries)


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
    "entries": lambda modules: [measure_entries()],
    "budget": lambda modules: measure_budget(),
    "edges": lambda modules: [measure_edges(modules)],
    "late imports": lambda modules: [measure_late_imports(modules)],
    "repeated files": lambda modules: [measure_repeated_files()],
    "hooks": lambda modules: [measure_hooks(modules)],
    "words": lambda modules: [measure_words()],
    "cycles": lambda modules: [measure_cycles(modules)],
    "upward imports": lambda modules: [measure_upward_imports(modules)],
    "repeated names": lambda modules: [measure_repeated_names(modules)],
    "participles": lambda modules: [measure_participles(modules)],
    "Any": lambda modules: [measure_any(modules)],
    "attributes": lambda modules: [measure_undocumented_attributes()],
    "journeys": lambda modules: journeys.measure_journeys(),
}

if __name__ == "__main__":
    trees = read_modules()
    for measure in MEASURES.values():
        for figure in measure(trees):
            print(figure)
            if "--verbose" in sys.argv:
                print(*(f"        {place}" for place in figure.places), sep="\n")
