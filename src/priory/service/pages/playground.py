"""The playground: textbook examples with candy bags, a coin, and fourteen days of tennis."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cache

from starlette.responses import Response

from priory import plots
from priory.errors import DataError
from priory.families.bernoulli import Bernoulli
from priory.hypotheses.continuum import Continuum
from priory.hypotheses.finite import Hypotheses
from priory.models.ledger_formatting import tabulate_probabilities
from priory.service.pages.page_call import PageCall
from priory.service.pages.rendering import render_figure, render_table
from priory.service.rows import Row

MAX_OBSERVATIONS = 100
MAX_PRIOR_COUNT = 1000.0

BAG_PRIOR = {"h1": 0.1, "h2": 0.2, "h3": 0.4, "h4": 0.2, "h5": 0.1}
LIME_SHARES = {"h1": 0.0, "h2": 0.25, "h3": 0.5, "h4": 0.75, "h5": 1.0}
CANDIES = {"l": "lime", "c": "cherry"}
COIN_SIDES = {"h": "heads", "t": "tails"}

TENNIS_COLUMNS = ("outlook", "temperature", "humidity", "wind")
TENNIS_DAYS = (
    ("sunny", "hot", "high", "weak", "no"),
    ("sunny", "hot", "high", "strong", "no"),
    ("overcast", "hot", "high", "weak", "yes"),
    ("rain", "mild", "high", "weak", "yes"),
    ("rain", "cool", "normal", "weak", "yes"),
    ("rain", "cool", "normal", "strong", "no"),
    ("overcast", "cool", "normal", "strong", "yes"),
    ("sunny", "mild", "high", "weak", "no"),
    ("sunny", "cool", "normal", "weak", "yes"),
    ("rain", "mild", "normal", "weak", "yes"),
    ("sunny", "mild", "normal", "strong", "yes"),
    ("overcast", "mild", "high", "strong", "yes"),
    ("overcast", "hot", "normal", "weak", "yes"),
    ("rain", "mild", "high", "strong", "no"),
)


@dataclass(frozen=True)
class Observations:
    """The outcomes so far, one letter each; they are part of the URL, so the server has no state."""

    letters: str
    names: dict[str, str]

    @classmethod
    def read(cls, given: str, names: dict[str, str]) -> Observations:
        if len(given) > MAX_OBSERVATIONS or any(letter not in names for letter in given):
            raise DataError(f"give up to {MAX_OBSERVATIONS} of the letters {', '.join(names)}")
        return cls(given, names)

    def list_names(self) -> list[str]:
        return [self.names[letter] for letter in self.letters]

    def draw(self, share_of_first: float) -> Observations:
        """Draw one more outcome at random; the first one has this probability."""
        first, second = self.names
        letter = first if secrets.randbelow(10_000) < 10_000 * share_of_first else second
        return Observations((self.letters + letter)[:MAX_OBSERVATIONS], self.names)


async def show_play(call: PageCall) -> Response:
    return call.render("play.html")


async def show_candy(call: PageCall) -> Response:
    """Draw candies from an unknown bag, and show the posterior of the five kinds of bags."""
    query = call.query
    bag = query.get("bag", "h4")
    if bag not in LIME_SHARES:
        raise DataError(f"the bags are {', '.join(LIME_SHARES)}")
    drawn = Observations.read(query.get("drawn", ""), CANDIES)
    if query.get("random"):
        drawn = drawn.draw(LIME_SHARES[bag])
    names = drawn.list_names()
    space = Hypotheses(
        prior=BAG_PRIOR,
        likelihood={name: {"lime": share, "cherry": 1 - share} for name, share in LIME_SHARES.items()},
    ).update_many(names)
    figure = await call.run(
        lambda: render_figure(
            lambda: plots.posterior_curves(space.clone_unfitted(), names), "posterior after each candy"
        )
    )
    return call.render(
        "candy.html",
        bag=bag,
        bags=LIME_SHARES,
        drawn=drawn,
        posterior=space.posterior,
        next_lime=space.predict_proba()["lime"],
        table=render_table(space.table()),
        figure=figure,
        can_draw=len(names) < MAX_OBSERVATIONS,
    )


async def show_coin(call: PageCall) -> Response:
    """Toss a coin, and show the Beta posterior of the probability of heads."""
    query = call.query
    a, b = (_read_count(query.get(name, "1"), name) for name in ("a", "b"))
    drawn = Observations.read(query.get("drawn", ""), COIN_SIDES)
    if query.get("random"):
        drawn = drawn.draw(0.5)
    names = drawn.list_names()
    coin = Continuum(("heads", "tails"), Bernoulli(a, b)).update_many(names)
    figure = await call.run(lambda: render_figure(lambda: plots.belief(coin), "density of the share of heads"))
    return call.render(
        "coin.html",
        a=f"{a:g}",
        b=f"{b:g}",
        drawn=drawn,
        n_heads=names.count("heads"),
        posterior=(f"{float(coin.posterior.a):g}", f"{float(coin.posterior.b):g}"),
        ml=coin.ml() if names else None,
        map=None if coin.map_fault else coin.map(),
        map_fault=coin.map_fault,
        mean=coin.predict_proba()["heads"],
        figure=figure,
        can_draw=len(names) < MAX_OBSERVATIONS,
    )


def _read_count(given: str, name: str) -> float:
    try:
        count = float(given)
    except ValueError:
        count = 0.0
    if not 1.0 <= count <= MAX_PRIOR_COUNT:
        raise DataError(f"{name} must be a number from 1 to {MAX_PRIOR_COUNT:,.0f}")
    return count


@cache
def list_tennis_values() -> dict[str, list[str]]:
    """Return the values of each column."""
    return {name: sorted({day[place] for day in TENNIS_DAYS}) for place, name in enumerate(TENNIS_COLUMNS)}


async def show_tennis(call: PageCall) -> Response:
    """Show naive Bayes by hand: the tables of the fourteen days, and the product for a new day."""
    query = call.query
    values = list_tennis_values()
    today: Row = {}
    for name, default in zip(TENNIS_COLUMNS, ("sunny", "cool", "high", "strong"), strict=True):
        given = query.get(name, default)
        if given not in ("", *values[name]):
            raise DataError(f"{name} is one of {', '.join(values[name])}")
        today[name] = given or None
    m = "laplace" if query.get("smoothing") == "laplace" else 0
    tables, ledger = await call.run(_play_tennis, today, m)
    return call.render(
        "tennis.html",
        days=TENNIS_DAYS,
        columns=TENNIS_COLUMNS,
        values=values,
        today=today,
        is_smoothed=m == "laplace",
        tables=tables,
        ledger=ledger,
    )


def _play_tennis(today: Row, m: float) -> tuple[list[object], object]:
    from priory.estimators.naive_bayes import NaiveBayes

    rows = [dict(zip(TENNIS_COLUMNS, day[:-1], strict=True)) for day in TENNIS_DAYS]
    model = NaiveBayes.textbook(m).fit(rows, [day[-1] for day in TENNIS_DAYS])
    tables = model.tables_
    shown: list[object] = [render_table(table) for table in (tables.class_prior, *tables.values())]
    return shown, render_table(tabulate_probabilities(model.explain([today])[0]))
