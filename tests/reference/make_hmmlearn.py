"""Write hmmlearn.json: ten steps of Baum-Welch by hmmlearn, which must be installed, from given starts, without its priors."""

import json
import warnings
from pathlib import Path

import hmmlearn
import numpy as np
from hmmlearn.hmm import CategoricalHMM, GaussianHMM

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
K, D, LENGTHS = 3, 2, [40, 25, 35]
means = 3.0 * rng.normal(size=(K, D))
X = (means[rng.integers(K, size=100)] + rng.normal(size=(100, D))).round(3)
symbols = rng.integers(4, size=100)
start, transition = rng.dirichlet(np.ones(K)).round(6), rng.dirichlet(np.ones(K), K).round(6)
start[-1], transition[:, -1] = 1 - start[:-1].sum(), 1 - transition[:, :-1].sum(axis=1)
first, emission = (means + rng.normal(size=(K, D))).round(3), rng.dirichlet(np.ones(4), K).round(6)
emission[:, -1] = 1 - emission[:, :-1].sum(axis=1)
found = {
    "version": hmmlearn.__version__,
    "lengths": LENGTHS,
    "X": X.tolist(),
    "symbols": symbols.tolist(),
    "start": start.tolist(),
    "transition": transition.tolist(),
    "means": first.tolist(),
    "emission": emission.tolist(),
    "fits": {},
}
options = {"n_iter": 10, "tol": 0.0, "init_params": ""}
for kind, shape in (("diag", (K, D)), ("full", (K, D, D)), ("spherical", (K,)), ("tied", (D, D))):
    model = GaussianHMM(K, covariance_type=kind, covars_prior=0.0, covars_weight=0.0, min_covar=0.0, **options)
    model.startprob_, model.transmat_, model.means_ = start, transition, first
    covars = np.broadcast_to(np.eye(D), shape) if kind in ("full", "tied") else np.ones(shape)
    model.covars_ = covars.copy()
    model.fit(X, LENGTHS)
    log_prob, path = model.decode(X, LENGTHS)
    found["fits"][kind] = {
        "startprob": model.startprob_.tolist(),
        "transmat": model.transmat_.tolist(),
        "means": model.means_.tolist(),
        "covars": model._covars_.tolist(),
        "score": model.score(X, LENGTHS),
        "history": list(model.monitor_.history),
        "log_prob": log_prob,
        "path": path.tolist(),
        "posterior": model.predict_proba(X, LENGTHS)[:5].tolist(),
    }
model = CategoricalHMM(K, n_features=4, **options)
model.startprob_, model.transmat_, model.emissionprob_ = start, transition, emission
model.fit(symbols[:, None], LENGTHS)
found["fits"]["categorical"] = {
    "startprob": model.startprob_.tolist(),
    "transmat": model.transmat_.tolist(),
    "emissionprob": model.emissionprob_.tolist(),
    "score": model.score(symbols[:, None], LENGTHS),
    "history": list(model.monitor_.history),
}
Path(__file__).with_name("hmmlearn.json").write_text(json.dumps(found))
