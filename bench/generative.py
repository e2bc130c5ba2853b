"""Generative networks: the same autoencoder in PyTorch, epoch for epoch; and how many heaps of a ring a game of two keeps.

Both autoencoders have layers 64-128-10-128-64 with ReLU and Bernoulli pixels, batches of 128, Adam in float32, and starts of
one law. PyTorch gets tensors that are made once, batches by one index and fused Adam. What both are worth is log p(x) of rows
held out, by importance sampling with 500 draws, by the same code. A heap counts as kept if at least 2 % of 2,500 draws lie
within three standard deviations of it; a fair share is 12.5 %.
"""

import time

import numpy as np
from sklearn.datasets import load_digits

from bench.harness import equal_threads
from lemmata.generative import GenerativeAdversarialNetwork, VariationalAutoencoder

EPOCHS, BATCH, SEEDS, DRAWS = 100, 128, 3, 500
FASTER, KEPT, ENOUGH = 2.0, 8, 9


def digits():
    X = (load_digits().data / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[:1500]], X[order[1500:]]


def ours(X, epochs, seed):
    options = {"likelihood": "bernoulli", "batch_size": BATCH, "max_iter": epochs, "tol": None, "random_state": seed}
    return VariationalAutoencoder(10, hidden_layer_sizes=(128,), **options).fit(X)


def torch_weights(X, epochs, seed):
    """Fit the same in PyTorch; return encoder and decoder in our order."""
    import torch
    from torch import nn

    torch.set_num_threads(2)
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 20))
    decoder = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 64))
    layers = [m for net in (encoder, decoder) for m in net if isinstance(m, nn.Linear)]
    for layer in layers:
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam([p for layer in layers for p in layer.parameters()], lr=1e-3, fused=True)
    rows = torch.from_numpy(X)
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(BATCH):
            x = rows[batch]
            mu, log_variance = encoder(x).chunk(2, dim=1)
            z = mu + torch.exp(0.5 * log_variance) * torch.randn_like(mu)
            missed = nn.functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
            far = 0.5 * (mu**2 + log_variance.exp() - 1 - log_variance).sum()
            optimizer.zero_grad(set_to_none=True)
            ((missed + far) / len(x)).backward()
            optimizer.step()
    parts = [(layer.weight.detach().numpy().T.ravel(), layer.bias.detach().numpy()) for layer in layers]
    return np.concatenate([part for pair in parts for part in pair])


def autoencoder():
    """Measure an epoch, in turns, and what rows held out are worth after as many."""
    X, unseen = digits()
    ours(X, 1, 0), torch_weights(X, 1, 0)
    times, scores = {"lemmata": np.inf, "PyTorch": np.inf}, {"lemmata": [], "PyTorch": []}
    for seed in range(SEEDS):
        start = time.perf_counter()
        model = ours(X, EPOCHS, seed)
        middle = time.perf_counter()
        weights = torch_weights(X, EPOCHS, seed)
        end = time.perf_counter()
        times = {"lemmata": min(times["lemmata"], middle - start), "PyTorch": min(times["PyTorch"], end - middle)}
        scores["lemmata"].append(model.score(unseen, n_samples=DRAWS))
        model.parameters_ = weights.astype(np.float32)
        scores["PyTorch"].append(model.score(unseen, n_samples=DRAWS))
    ratio = times["PyTorch"] / times["lemmata"]
    lines = [
        f"VAE 64-128-10-128-64 on digits, {EPOCHS} epochs of {len(X)} rows, {SEEDS} seeds",
        "",
        "| who | ms an epoch | ratio | bar | log p(x) of rows held out |",
        "|---|---:|---:|---|---|",
    ]
    for name in times:
        found = ", ".join(f"{score:.2f}" for score in scores[name])
        told = ("", "") if name == "lemmata" else (f"{ratio:.2f}×", f"{FASTER:g}× {'✓' if ratio >= FASTER else '✗'}")
        lines.append(f"| {name} | {1e3 * times[name] / EPOCHS:.2f} | {told[0]} | {told[1]} | {found} |")
    return lines


def ring(rng, n=2_000):
    angle = 2 * np.pi * rng.integers(8, size=n) / 8
    return 2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


def heaps():
    """Count the heaps that draws of each of ten seeds reach."""
    centers = 2 * np.column_stack([np.cos(2 * np.pi * np.arange(8) / 8), np.sin(2 * np.pi * np.arange(8) / 8)])
    kept, seconds = [], []
    for seed in range(10):
        X = ring(np.random.default_rng(seed))
        start = time.perf_counter()
        model = GenerativeAdversarialNetwork(2, random_state=seed).fit(X)
        seconds.append(time.perf_counter() - start)
        drawn = model.sample(2_500, random_state=seed)
        near = np.linalg.norm(drawn[:, None] - centers, axis=2) < 3 * 0.05
        kept.append(int((near.mean(axis=0) >= 0.02).sum()))
    full = sum(k == KEPT for k in kept)
    told = f"{full} of 10 seeds keep all {KEPT} heaps (bar {ENOUGH} {'✓' if full >= ENOUGH else '✗'}): {kept}"
    return ["", f"GAN on a ring of 8 Gaussians: {told}; at most {max(seconds):.1f} s."]


def report():
    with equal_threads():
        return "\n".join([*autoencoder(), *heaps()])
