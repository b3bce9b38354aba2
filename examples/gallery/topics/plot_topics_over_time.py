"""
Topics over time
================

Documents of three years, with one event that lasts a month.  A model whose
topics change from month to month finds it, and draws the others as well.
"""

# %%
# The documents have everyday topics, and a flood in July 2021.

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import ssnmf_fast as sf

words = {
    "politics": ["vote", "minister", "party", "law", "debate", "budget"],
    "sport": ["game", "team", "season", "player", "score", "coach"],
    "markets": ["shares", "price", "bank", "trade", "rate", "profit"],
    "flood": ["flood", "river", "dam", "rescue", "rain", "damage"],
}
rng = np.random.default_rng(0)
texts, dates = [], []
for month in np.arange("2020-01", "2023-01", dtype="datetime64[M]"):
    for _ in range(40):
        chance = [1.0, 1.0, 1.0, 2.0 if str(month) == "2021-07" else 0.0]
        subject = rng.choice(list(words), p=np.array(chance) / sum(chance))
        texts.append(" ".join(rng.choice(words[subject], 8)))
        dates.append(month)

# %%
# With `"tied"`, documents of a month have the same coefficients.  The default
# uses it if events make many months differ; here it is only one of 36.

vectorizer = CountVectorizer()
X = vectorizer.fit_transform(texts).astype(float)
model = sf.DynamicTopics(4, freq="month", method="tied", random_state=0)
model.fit(X, dates)

# %%

picture = sf.plotting.topics_over_time(
    model, vectorizer.get_feature_names_out()
)

# %%
# :doc:`/guide/dynamic` covers headlines of twelve years, and explains what to
# do if topics become months.
