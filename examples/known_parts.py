"""L1 penalties: on S, components become digits; on A, parts of digits."""

import sys

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import ssnmf_fast as sf
from ssnmf_fast import plotting
from ssnmf_fast.penalties import L1, L2

X = load_digits().data / 16
options = {"n_components": 12, "max_iter": 500, "random_state": 0}
small = L2(1e-3)
rows = {
    "no penalty": None,
    "S has L1(0.04)": {"S": L1(0.04), "A": small},
    "A has L1(0.04)": {"S": small, "A": L1(0.04)},
}
picture = Figure(figsize=(6, 5.2), layout="constrained")
images, curves = picture.subfigures(2, 1, height_ratios=(1, 1.1))
for cell, (title, given) in zip(
    images.subplots(1, 3), rows.items(), strict=True
):
    fit = sf.factorize(X, penalties=given, **options)
    plotting.image_grid(fit.A, (8, 8), columns=3, title=title, ax=cell)
    print(
        f"{title}: {np.mean(fit.S > 0):.0%} of S "
        f"and {np.mean(fit.A > 0):.0%} of A are positive"
    )

path = np.linspace(0, 0.02, 11)
fits = [sf.factorize(X, penalties=[L1(c), L2(1e-6)], **options) for c in path]
lost = [np.sum((X - fit.S @ fit.A) ** 2) / np.sum(X**2) for fit in fits]
ax = curves.subplots()
ax.plot(
    path,
    [np.mean(fit.S > 0) for fit in fits],
    marker="o",
    label="S: positive entries",
)
ax.plot(
    path,
    [np.mean(fit.A > 0) for fit in fits],
    marker="s",
    label="A: positive entries",
)
ax.plot(path, lost, marker="^", label="unexplained squares")
ax.set(xlabel="coefficient of L1 for S and A", ylabel="share", ylim=(0, 1))
ax.legend(frameon=False)
picture.savefig(sys.argv[1] if len(sys.argv) > 1 else "known_parts.png")
