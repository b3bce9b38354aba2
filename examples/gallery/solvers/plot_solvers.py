"""
Solvers
=======

Four solvers from the same start.  The default is coordinate descent with
momentum; the papers' multiplicative updates are ``"mu"``.
"""

# %%

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import ssnmf_fast as sf

X = load_digits().data
curves = {}
for solver in ("auto", "hals", "mu"):
    seen = []
    sf.factorize(
        X,
        n_components=20,
        solver=solver,
        init="random",
        random_state=0,
        max_iter=300,
        tol=0,
        callback=lambda state, seen=seen: seen.append(
            (state.iteration, state.objective)
        ),
    )
    curves[solver] = seen

# %%
# The plot shows how far the objective is above the smallest one found.

least = min(objective for seen in curves.values() for _, objective in seen)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (solver, seen), style in zip(
    curves.items(), ("-", "--", ":"), strict=True
):
    iterations = [iteration for iteration, _ in seen]
    above = [100 * (objective / least - 1) + 1e-3 for _, objective in seen]
    axes.plot(iterations, above, style, label=f'solver="{solver}"')
axes.set(
    yscale="log", xlabel="iteration", ylabel="above the smallest objective (%)"
)
axes.legend()

# %%
# :doc:`/evidence/solvers` compares times on real data and with other packages.
