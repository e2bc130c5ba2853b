"""Information criteria: how well a model fits, less what its parameters cost.

With L the log-likelihood of the rows at the fit, K parameters and N observations, two scales are in use [1, 2]:

                                usual             of some books: half of it
    Akaike, AIC             2K − 2L                −L + K
    Bayes, BIC              K ln N − 2L            −L + ½ K ln N

Both order models alike, and the less the better. AIC estimates −2 times the log-likelihood of new rows: a fit looks better on
its own rows than on new ones by 2K, on average and to first order. AICc = AIC + 2K(K + 1)/(N − K − 1) is exact for normal
regressions and matters where N is no large multiple of K [3]. BIC estimates −2 ln p(rows | model): Laplace's approximation is
L + ln p(θ̂) + ½K ln 2π − ½ ln|−∇²L|, the Hessian grows like N, and what does not grow is left out; so BIC is off by a number
that stays bounded (`laplace_evidence` keeps it). N must be declared: five rows of ten tosses are 5 or 50 observations.
Only criteria of the same data compare: the same rows, in the same units, with nothing of them left out.

[1] Akaike, IEEE Trans. Autom. Control 19 (1974). [2] Schwarz, Ann. Stat. 6 (1978). [3] Hurvich & Tsai, Biometrika 76 (1989).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from math import inf, log

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import TINY
from lemmata.model_selection import likelihoods  # noqa: F401 - its families register themselves
from lemmata.model_selection.likelihoods.account import checked_n, law_of, present


@dataclass(frozen=True)
class InformationCriteria:
    """The criteria of one model on its rows, with what was counted.

    Attributes
    ----------
    log_likelihood : L, of all rows together.
    counted : Number of parameters of each part of the model, by its name; not always a whole number, where a penalty holds
        parameters back.
    n_rows : N of Bayes' criterion.
    unit : What N counts.
    log_evidence : ln p(rows | model), None if the model has none.
    evidence : How the evidence was found.
    note : What has to be known before a criterion is quoted, a sentence each.
    subject : The model.

    Examples
    --------
    >>> two_coins = InformationCriteria(-31.570200, {"chances of heads": 2}, 5, "rows")
    >>> two_coins.half_aic, two_coins.half_bic
    (33.5702, 33.179638)
    >>> two_coins.aic, two_coins.bic
    (67.1404, 66.359276)
    >>> print(two_coins)
    log-likelihood L = -31.5702, K = 2 parameters, N = 5 rows
      criterion    value     half  formula
      AIC        67.1404  33.5702  2K − 2L
      AICc       73.1404  36.5702  AIC + 2K(K + 1)/(N − K − 1)
      BIC        66.3593  33.1796  K ln N − 2L
      counted: 2 chances of heads
    """

    log_likelihood: float
    counted: Mapping[str, float]
    n_rows: float
    unit: str = "rows"
    log_evidence: float | None = None
    evidence: str = ""
    note: tuple[str, ...] = field(default=(), repr=False)
    subject: str = ""

    @property
    def n_parameters(self):
        """K, the sum of what was counted."""
        total = float(sum(self.counted.values()))
        return int(total) if total.is_integer() else total

    @property
    def aic(self):
        """Akaike's criterion, 2K − 2L."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def aicc(self):
        """The same for few rows, AIC + 2K(K + 1)/(N − K − 1); infinite where N is not above K + 1."""
        K, left = self.n_parameters, self.n_rows - self.n_parameters - 1
        return self.aic + 2 * K * (K + 1) / left if left > 0 else inf

    @property
    def bic(self):
        """Bayes' criterion, K ln N − 2L."""
        return self.n_parameters * log(self.n_rows) - 2 * self.log_likelihood

    @property
    def half_aic(self):
        """Akaike's criterion as some books have it, −L + K."""
        return self.aic / 2

    @property
    def half_bic(self):
        """Bayes' criterion as some books have it, −L + ½ K ln N."""
        return self.bic / 2

    def _title(self):
        said = f"log-likelihood L = {_shown(self.log_likelihood)}, K = {self.n_parameters:g} parameters"
        return f"{self.subject + ': ' if self.subject else ''}{said}, N = {self.n_rows:g} {self.unit}"

    def _table(self):
        rows = [
            ("AIC", self.aic, "2K − 2L"),
            ("AICc", self.aicc, "AIC + 2K(K + 1)/(N − K − 1)"),
            ("BIC", self.bic, "K ln N − 2L"),
        ]
        if self.log_evidence is not None:
            rows.append(("−2 ln evidence", -2 * self.log_evidence, self.evidence))
        return [(name, _shown(value), _shown(value / 2), formula) for name, value, formula in rows]

    def _sentences(self):
        parts = ", ".join(f"{count:.6g} {part}" for part, count in self.counted.items())
        return [f"counted: {parts or 'nothing'}", *(f"- {sentence}" for sentence in self.note)]

    def __str__(self):
        rows = [("criterion", "value", "half", "formula"), *self._table()]
        w = [max(len(row[j]) for row in rows) for j in range(3)]
        lines = [f"  {a:<{w[0]}}  {b:>{w[1]}}  {c:>{w[2]}}  {d}" for a, b, c, d in rows]
        return "\n".join([self._title(), *lines, *(f"  {sentence}" for sentence in self._sentences())])

    def _repr_html_(self):
        left, right = "style='text-align:left'", "style='text-align:right'"
        cells = ((left, right, right, left), self._table())
        body = "".join(
            f"<tr>{''.join(f'<td {side}>{escape(c)}</td>' for side, c in zip(cells[0], r, strict=True))}</tr>" for r in cells[1]
        )
        head = "".join(f"<th {left}>{h}</th>" for h in ("criterion", "value", "half", "formula"))
        foot = "".join(f"<tr><td colspan='4' {left}>{escape(sentence)}</td></tr>" for sentence in self._sentences())
        return (
            f"<table class='lemmata-criteria'><caption style='text-align:left'>{escape(self._title())}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody><tfoot>{foot}</tfoot></table>"
        )

    def to_dict(self):
        """Give everything as plain values, ready for JSON; what is infinite is None there."""
        names = ("log_likelihood", "n_parameters", "n_rows", "aic", "aicc", "bic", "half_aic", "half_bic", "log_evidence")
        numbers = {name: getattr(self, name) for name in names}
        numbers = {name: None if value is None or not np.isfinite(value) else value for name, value in numbers.items()}
        words = {"subject": self.subject, "unit": self.unit, "evidence": self.evidence, "note": list(self.note)}
        return words | numbers | {"counted": dict(self.counted)}


def information_criteria(model, X, y=None, *, sample_weight=None, lengths=None, n=None):
    """Give AIC, AICc, BIC and the evidence of a fitted model, ours or scikit-learn's, on the rows of its fit.

    Parameters
    ----------
    model : Fitted estimator with a likelihood: a regression (normal noise), a classifier that gives probabilities, a Gaussian
        process, a density, a mixture, a factorization, a model of sequences or of a graph; also in a pipeline, in a search, or
        in `Decide`. Others are refused in a sentence that says why. An object of another library that has `score` (or
        `score_samples`) and `aic`, such as hmmlearn's, is asked for its own count.
    X, y : The rows of the fit and their targets. On other rows the criteria still are what the formulas say, and mean less.
    sample_weight : A weight means repetition: N is the sum of the weights.
    lengths : Lengths of the sequences in X, for hidden Markov models.
    n : N of BIC and AICc, if it is not what the model takes: rows, or symbols, words, entries or ratings (see `unit`).

    Returns
    -------
    result : InformationCriteria. `aic` and `bic` are on the usual scale, `half_aic` and `half_bic` on half of it.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [1.0, 3.0, 2.0, 5.0, 4.0]
    >>> print(information_criteria(LinearRegression().fit(X, y), X, y))
    LinearRegression(): log-likelihood L = -6.27343, K = 3 parameters, N = 5 rows
      criterion    value     half  formula
      AIC        18.5469  9.27343  2K − 2L
      AICc       42.5469  21.2734  AIC + 2K(K + 1)/(N − K − 1)
      BIC        17.3752  8.68759  K ln N − 2L
      counted: 1 coefficients, 1 intercepts, 1 noise variance
      - the noise is normal, its variance the best one for these rows, and counted
    >>> from lemmata.mixture import GaussianMixture
    >>> data = [[-3.1], [-3.0], [-2.9], [2.8], [3.0], [3.2]]
    >>> scores = [information_criteria(GaussianMixture(k, random_state=0).fit(data), data).bic for k in (1, 2)]
    >>> scores[1] < scores[0]
    True
    """
    declared = checked_n(n)
    core, steps = unwrapped(model)
    law = law_of(core)
    check_is_fitted(core)
    X, note = transformed(steps, X)
    found = law(core, present(X, y, sample_weight, lengths))
    counted = {part: int(c) if float(c).is_integer() else float(c) for part, c in found.counted.items()}
    return InformationCriteria(
        float(found.log_likelihood),
        counted,
        found.n if declared is None else declared,
        found.unit if declared is None else "observations, as declared",
        found.log_evidence,
        found.evidence,
        found.note + note,
        " ".join(repr(core).split()),
    )


def unwrapped(model):
    """Take pipelines, searches and wrappers off a model: give the estimator inside and the steps before it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lemmata.linear_model import Ridge
    >>> unwrapped(make_pipeline(StandardScaler(), Ridge()))
    (Ridge(), [StandardScaler()])
    """
    steps = []
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "steps") and hasattr(model, "named_steps"):
            steps += [step for _, step in model.steps[:-1] if step is not None and not isinstance(step, str)]
            model = model.steps[-1][1]
        elif type(model).__name__ == "Decide" and hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            return model, steps


def transformed(steps, X):
    """Send rows through the steps before a model; say what that means for its criteria."""
    for step in steps:
        X = step.transform(X)
    names = ", ".join(type(step).__name__ for step in steps)
    said = f"what {names} learned is not counted, and a density is one of the columns that come out of it"
    return X, (said,) if steps else ()


def _shown(value):
    """Give a number to six digits."""
    return "∞" if value == inf else "−∞" if value == -inf else f"{value if abs(value) > TINY else 0.0:.6g}"
