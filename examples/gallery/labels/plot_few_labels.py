"""
Classify with few labels
========================

Only one in forty training images is labeled.  A linear classifier uses only
these; the semi-supervised classifier learns from all images.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import ssnmf_fast as sf

X, digit = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(
    X, digit, random_state=0, stratify=digit
)

# %%
# Both classifiers get the same labels; -1 means unlabeled.

rates = [0.01, 0.025, 0.05, 0.1, 0.2]
accuracy = {"FewLabelsClassifier": [], "LogisticRegression": []}
order = np.random.default_rng(0).permutation(len(train))
for rate in rates:
    first = [np.flatnonzero(y_train == label)[0] for label in range(10)]
    seen = np.union1d(first, order[: round(rate * len(order))])
    labels = np.full(len(train), -1)
    labels[seen] = y_train[seen]
    ours = sf.FewLabelsClassifier(random_state=0).fit(train, labels)
    linear = LogisticRegression(max_iter=5000).fit(
        train[seen] / 16, y_train[seen]
    )
    accuracy["FewLabelsClassifier"].append(ours.score(test, y_test))
    accuracy["LogisticRegression"].append(linear.score(test / 16, y_test))

# %%

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, values), marker in zip(accuracy.items(), "os", strict=True):
    axes.plot(
        np.array(rates) * 100,
        np.array(values) * 100,
        marker=marker,
        label=name,
    )
axes.set(
    xscale="log", xlabel="labeled images (%)", ylabel="right on new images (%)"
)
axes.set_xticks(np.array(rates) * 100, [f"{100 * rate:g}" for rate in rates])
axes.minorticks_off()
axes.legend()

# %%
# With many labels both are similar: :doc:`/guide/few_labels` has the figures
# for six data sets.
