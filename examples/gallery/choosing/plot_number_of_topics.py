"""
How many topics?
================

A tenth of the words of every text is hidden.  Topics of the other words
predict them: up to a point, more topics predict them better.
"""

# %%
# The texts are the docstrings of SciPy's functions.

import inspect
from importlib import import_module

import matplotlib.pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer

import ssnmf_fast as sf

texts = []
for part in ["fft", "integrate", "linalg", "signal", "sparse", "stats"]:
    module = import_module(f"scipy.{part}")
    pages = [inspect.getdoc(getattr(module, name)) for name in module.__all__]
    texts += [page.partition("Examples\n")[0] for page in pages if page]
vectorizer = CountVectorizer(
    stop_words="english", min_df=3, max_df=0.5, token_pattern="[a-z]{3,}"
)
X = vectorizer.fit_transform(texts)
print(X.shape)

# %%
# ``"auto"`` finds a number of topics, and a range that is about as good.

model = sf.NMF("auto", loss="kullback-leibler", random_state=0).fit(X)
print(model.rank_choice_)

# %%

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
drawn = model.rank_choice_.plot(ax=axes)

# %%
# The leading words of the first topics:

for topic in list(model.topics(vectorizer.get_feature_names_out(), 5))[:6]:
    print(", ".join(topic.terms))

# %%
# :doc:`/guide/choosing` explains how the number is found, and how reliable it
# is.
