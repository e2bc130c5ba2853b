"""Networks trained by mini-batches: as many epochs with the same rule as scikit-learn and PyTorch, from starts of one law.

The objective is the mean loss over all rows at the weights that each one ends with. Starts and orders are drawn, so losses
agree only as two seeds do.
PyTorch gets its best: tensors that are made once, batches by one index, fused Adam, no loader.
"""

from functools import partial
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier as PeerClassifier
from sklearn.neural_network import MLPRegressor as PeerRegressor

from bench.harness import Row
from lemmata.neural_network import MLPClassifier, MLPRegressor

ALPHA = 1e-4


def digits():
    X, y = load_digits(return_X_y=True)
    return np.tile((X / 16).astype(np.float32), (10, 1)), np.tile(y, 10)


def waves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 50)).astype(np.float32)
    y = np.sin(X[:, :5]).sum(axis=1) + 0.1 * rng.normal(size=len(X))
    return X, ((y - y.mean()) / y.std()).astype(np.float32)


def ours(model, hidden, batch, epochs, data):
    options = {"batch_size": batch, "max_iter": epochs, "tol": None, "alpha": ALPHA, "standardize": False, "random_state": 0}
    fitted = model(hidden, **options).fit(*data)
    return [layer for pair in zip(fitted.coefs_, fitted.intercepts_, strict=True) for layer in pair]


def scikit(model, hidden, batch, epochs, data):
    options = {"batch_size": batch, "max_iter": epochs, "tol": 0.0, "n_iter_no_change": epochs + 1, "alpha": ALPHA}
    fitted = model(hidden_layer_sizes=hidden, random_state=0, **options).fit(*data)
    return [layer for pair in zip(fitted.coefs_, fitted.intercepts_, strict=True) for layer in pair]


def torch_network(hidden, batch, epochs, data):
    import torch
    from torch import nn

    torch.set_num_threads(2)
    torch.manual_seed(0)
    X, y = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    classes = int(y.max()) + 1 if y.dtype == torch.int64 else 1
    sizes = [X.shape[1], *hidden, classes]
    layers = []
    for n, m in pairwise(sizes):
        layers += [nn.Linear(n, m), nn.ReLU()]
        nn.init.xavier_uniform_(layers[-2].weight)
        nn.init.zeros_(layers[-2].bias)
    network = nn.Sequential(*layers[:-1])
    weights = [p for p in network.parameters() if p.ndim == 2]
    biases = [p for p in network.parameters() if p.ndim == 1]
    groups = [{"params": weights, "weight_decay": ALPHA / batch}, {"params": biases, "weight_decay": 0.0}]
    optimizer = torch.optim.Adam(groups, lr=1e-3, fused=True)
    loss = nn.CrossEntropyLoss() if classes > 1 else (lambda out, target: 0.5 * ((out[:, 0] - target) ** 2).mean())
    for _ in range(epochs):
        order = torch.randperm(len(X))
        for rows in order.split(batch):
            optimizer.zero_grad(set_to_none=True)
            loss(network(X[rows]), y[rows]).backward()
            optimizer.step()
    return [p.detach().numpy().T if p.ndim == 2 else p.detach().numpy() for p in network.parameters()]


def mean_loss(data, layers):
    """Mean loss over all rows, of networks with ReLU."""
    X, y = data
    Z = X.astype(float)
    for k in range(0, len(layers), 2):
        A = Z @ layers[k] + layers[k + 1]
        Z = np.maximum(A, 0)
    if A.shape[1] == 1:
        return float(0.5 * ((A[:, 0] - y) ** 2).mean())
    return float((np.logaddexp.reduce(A, axis=1) - A[np.arange(len(y)), y.astype(int)]).mean())


def row(name, make, models, hidden, batch, epochs, bars, agree):
    ours_of, peer_of = models
    peers = {
        "scikit-learn": partial(scikit, peer_of, hidden, batch, epochs),
        "PyTorch": partial(torch_network, hidden, batch, epochs),
    }
    return Row(name, make, partial(ours, ours_of, hidden, batch, epochs), peers, mean_loss, bars, agree=agree, repeats=5)


ROWS = [
    row(
        "MLPClassifier (100,), digits × 10, batch 200, 20 epochs, Adam, float32", digits, (MLPClassifier, PeerClassifier),
        (100,), 200, 20, {"scikit-learn": 1.8, "PyTorch": 3.0}, 0.5,
    ),
    row(
        "MLPRegressor (256, 256), 100,000 × 50, batch 256, 5 epochs, Adam, float32", waves, (MLPRegressor, PeerRegressor),
        (256, 256), 256, 5, {"scikit-learn": 1.3, "PyTorch": 1.0}, 0.5,
    ),
]  # fmt: skip
