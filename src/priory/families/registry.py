"""Registration of families: the name of each family in parameters, and whether "auto" considers it.

    @register_family("poisson", auto_rank=2)
    @final
    @dataclass(frozen=True, eq=False)
    class Poisson(Family): ...

Everything else about a family is declared in its class body: ``column_kind`` (whether cells are read as numbers,
labels or texts), ``accepted_values``, and the methods ``accepts`` and ``with_alpha``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from priory.core.registration import BY_CLASS, Registration, add_registration
from priory.core.typing import ColumnKind
from priory.families.base import AnyFamily

FamilyT = TypeVar("FamilyT", bound=type[AnyFamily])


@dataclass(frozen=True)
class FamilyRegistration(Registration):
    """The registration of a family: its name in parameters ("" if it needs arguments), and its rank in "auto"."""

    cls: type[AnyFamily]
    declared_name: str = ""
    auto_rank: int | None = None


def register_family(declared_name: str = "", *, auto_rank: int | None = None) -> Callable[[FamilyT], FamilyT]:
    """Register a family, so that parameters can name it and model files can contain it.

    ``declared_name`` is the name in ``families={"column": name}`` and ``--type column=name``; leave it out for a family
    that needs arguments. ``auto_rank`` makes it a candidate of "auto": of families with equal evidence, the one with
    the lowest rank (the simplest) is chosen.
    """

    def register(cls: FamilyT) -> FamilyT:
        return add_registration(
            FamilyRegistration(cls, cls.__name__, declared_name=declared_name, auto_rank=auto_rank), cls
        )

    return register


def is_registered_family(cls: type) -> bool:
    return isinstance(BY_CLASS.get(cls), FamilyRegistration)


def families_by_name() -> dict[str, type[AnyFamily]]:
    """The families that have a name in parameters, sorted by name."""
    found = {r.declared_name: r.cls for r in _registrations() if r.declared_name}
    return dict(sorted(found.items()))


def auto_candidates(kind: ColumnKind) -> tuple[type[AnyFamily], ...]:
    """The families that "auto" chooses from for a column of this kind, the simplest first."""
    ranked = [(r.auto_rank, r.cls) for r in _registrations() if r.auto_rank is not None and r.cls.column_kind == kind]
    return tuple(cls for _, cls in sorted(ranked, key=lambda pair: pair[0]))


def _registrations() -> list[FamilyRegistration]:
    return [r for r in BY_CLASS.values() if isinstance(r, FamilyRegistration)]
