"""The worked examples of the lectures as data: what is given, and the numbers that have to come out."""

from fractions import Fraction
from math import exp, log


def rows(lines):
    """One list of words for each line.

    >>> rows("sunny hot\\n rain mild")
    [['sunny', 'hot'], ['rain', 'mild']]
    """
    return [line.split() for line in lines.strip().splitlines()]


def limes(n):
    """Posterior of the five candy bags after n limes in a row, and the probability that the next is a lime.

    >>> [str(p) for p in limes(1)["posterior"]], str(limes(1)["P(next=lime)"])
    (['0', '1/10', '2/5', '3/10', '1/5'], '13/20')
    """
    prior, lime = [Fraction(p, 10) for p in (1, 2, 4, 2, 1)], [Fraction(p, 4) for p in range(5)]
    joint = [p * q**n for p, q in zip(prior, lime, strict=True)]
    posterior = [p / sum(joint) for p in joint]
    return {"posterior": posterior, "P(next=lime)": sum(p * q for p, q in zip(posterior, lime, strict=True))}


WORKED_EXAMPLES = {
    "bayes_optimal_vs_map": {
        "posterior": {"h1": 0.4, "h2": 0.3, "h3": 0.3},
        "P(+|h)": {"h1": 1, "h2": 0, "h3": 0},
        "expect": {"map": "h1", "bayes_optimal": {"+": 0.4, "-": 0.6}, "bayes_optimal_prediction": "-"},
    },
    "gibbs_bound": {  # of the posteriors above: the draw and the truth differ, with probability 2 * 0.4 * 0.6
        "expect": {"error_of_the_vote": 0.4, "error_of_gibbs": 0.48, "most_times_as_often": 2},
    },
    "gibbs_of_noisy_hypotheses": {  # four bags of limes, and one with 51 % cherries: 0.8 * 0.102 + 0.2 * 0.898
        "prior": {"limes": 0.8, "mixed": 0.2},
        "P(cherry|h)": {"limes": 0, "mixed": 0.51},
        "expect": {"error_of_the_vote": 0.102, "error_of_gibbs": 0.2612},
    },
    "candy_bags": {"expect": [limes(n) for n in range(11)]},
    "mdl_equals_map": {  # the candy bags after three limes, in bits
        "expect_bits": {
            "h1": float("inf"),
            "h2": 8.321928094887362,
            "h3": 4.321928094887362,
            "h4": 3.5670405927238935,
            "h5": 3.321928094887362,
        },
        "shortest": "h5",
    },
    "play_tennis": {
        "columns": ["outlook", "temperature", "humidity", "wind", "play"],
        "rows": rows("""
            sunny     hot   high    weak    no
            sunny     hot   high    strong  no
            overcast  hot   high    weak    yes
            rain      mild  high    weak    yes
            rain      cool  normal  weak    yes
            rain      cool  normal  strong  no
            overcast  cool  normal  strong  yes
            sunny     mild  high    weak    no
            sunny     cool  normal  weak    yes
            rain      mild  normal  weak    yes
            sunny     mild  normal  strong  yes
            overcast  mild  high    strong  yes
            overcast  hot   normal  weak    yes
            rain      mild  high    strong  no
        """),
        "query": ["sunny", "cool", "high", "strong"],
        "expect": {
            "prior": {"no": 5 / 14, "yes": 9 / 14},
            "P(strong|play)": {"no": 3 / 5, "yes": 1 / 3},
            "joint": {"no": 0.02057142857142857, "yes": 0.005291005291005291},
            "posterior": {"no": 0.795417348608838, "yes": 0.20458265139116202},
            "class": "no",
        },
    },
    "missing_feature": {  # play_tennis, the temperature unknown
        "query": ["sunny", None, "high", "strong"],
        "expect": {
            "joint": {"no": 0.10285714285714286, "yes": 0.015873015873015872},
            "posterior": {"no": 0.8663101604278075, "yes": 0.13368983957219252},
        },
    },
    "go_to_library": {
        "columns": ["outlook", "temperature", "humidity", "wind", "library"],
        "rows": rows("""
            Sunny     Hot   High    Weak    Yes
            Sunny     Hot   High    Strong  Yes
            Overcast  Hot   High    Weak    No
            Rain      Mild  High    Weak    No
            Rain      Cool  Normal  Weak    No
            Rain      Cool  Normal  Strong  Yes
            Overcast  Cool  Normal  Strong  No
            Sunny     Mild  High    Weak    Yes
            Rain      Cool  Normal  Weak    No
        """),
        "query": ["Sunny", "Cool", "High", "Strong"],
        "expect": {
            "ml_joint": {"No": 0.0, "Yes": 0.03125},
            "ml_class": "Yes",
            "laplace_joint": {"No": 0.004251700680272109, "Yes": 0.02418745275888133},
            "laplace_posterior": {"No": 0.14950166112956811, "Yes": 0.8504983388704319},
        },
    },
    "bayes_rule_course": {
        "P(library|course)": 0.8,
        "P(course)": 0.01,
        "P(library)": 0.1,
        "expect": {"P(course|library)": 0.08},
    },
    "log_sum_exp": {"input": [-120, -121], "expect": -119.68673831248178},
    "bag_of_words_dictionary": {
        "dictionary": ["John", "Mary", "sex", "money", "send", "meeting", "unknown"],
        "text": "John sent money to Mary after the meeting about money",
        "expect_binary": [1, 1, 0, 1, 0, 1, 1],
    },
    "binary_bag_of_words": {
        "documents": ["I like cats.", "Dogs are friendly.", "Cats and dogs are pets."],
        "vocabulary": ["i", "like", "cats", "dogs", "are", "friendly", "and", "pets"],
        "expect": [[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 0, 1, 1]],
    },
    "book_and_movie_reviews": {
        "positive": ["I enjoyed the movie.", "The book was excellent.", "The movie was good.", "The book was good."],
        "negative": ["The movie was bad.", "I disliked the book.", "The book was poor.", "The movie was poor."],
        "vocabulary": ["bad", "book", "disliked", "enjoyed", "excellent", "good", "i", "movie", "poor", "the", "was"],
        "test": "I enjoyed the book.",
        "parameters_to_estimate": 24,
        "expect": {
            "bernoulli_alpha_1_joint": {"positive": 0.0007442177259564091, "negative": 0.0002976870903825636},
            "bernoulli_alpha_1_posterior": {"positive": 5 / 7, "negative": 2 / 7},
            "bernoulli_unsmoothed_joint": {"positive": 0.000732421875, "negative": 0.0},
            "multinomial_alpha_1_joint": {"positive": 5.645029269476762e-05, "negative": 2.822514634738381e-05},
            "multinomial_alpha_1_posterior": {"positive": 2 / 3, "negative": 1 / 3},
            "class": "positive",
        },
    },
    "likes_dislikes_prior": {
        "documents": 1000,
        "dislikes": 700,
        "likes": 300,
        "expect": {"P(like)": 0.3, "P(dislike)": 0.7},
    },
    "bernoulli_ml": {"cherries": 7, "limes": 3, "expect": {"theta_ML": 0.7}},
    "gaussian_ml": {
        "data": [3.23, 1.23, 0.55, 1.23],
        "expect": {"mean": 1.56, "variance": 1.0067000000000002},  # divided by m, not by m - 1
    },
    "two_multinomial_estimators": {
        "counts_of_one_class": [[2, 1, 0], [8, 0, 0], [0, 3, 1]],
        "expect": {
            "pooled": [10 / 15, 4 / 15, 1 / 15],  # every token has the same weight
            "mean_of_documents": [20 / 36, 13 / 36, 3 / 36],  # every document has the same weight
        },
    },
    "poisson_ml": {
        "counts_of_one_class": [[2, 1, 0], [8, 0, 0], [0, 3, 1]],
        "expect": {"rates": [10 / 3, 4 / 3, 1 / 3]},
    },
    "sigmoid_unit": {  # one step from zero weights, and -Σ d ln h + (1 - d) ln(1 - h) before and after it
        "x": [[1.0], [3.0]],
        "d": [0, 1],
        "eta": 0.1,
        "expect": {"weight": 0.1, "errors": [2 * log(2), log(1 + exp(0.1)) + log(1 + exp(-0.3))]},
    },
    "m_estimate": {"n_c": 0, "n": 5, "m": 3, "p": 1 / 3, "expect": 1 / 8},
}
