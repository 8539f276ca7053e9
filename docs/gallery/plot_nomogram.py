"""
Nomogram
========

What each value adds to the log odds, and the probability of the sum.
"""

from priory import NaiveBayes, plots

days = """
sunny hot high weak no, sunny hot high strong no, overcast hot high weak yes, rain mild high weak yes,
rain cool normal weak yes, rain cool normal strong no, overcast cool normal strong yes, sunny mild high weak no,
sunny cool normal weak yes, rain mild normal weak yes, sunny mild normal strong yes, overcast mild high strong yes,
overcast hot normal weak yes, rain mild high strong no
"""
rows = [day.split() for day in days.split(",")]
table = [dict(zip(["outlook", "temperature", "humidity", "wind"], row, strict=False)) for row in rows]
model = NaiveBayes.textbook("laplace").fit(table, [row[-1] for row in rows])
figure = plots.nomogram(model, "yes")

# %%
# The evidence for one day, as bars.
bars = plots.evidence_bars(model.explain(table[:1])[0])
