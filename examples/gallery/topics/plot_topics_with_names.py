"""
Topics named by labels
======================

Some documents are labeled with one or more topics.  TS-NMF finds a topic for
each of these names, and two free topics for everything else.
"""

# %%
# The texts use five vocabularies; each document mixes one or two of them.

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import ssnmf_fast as sf

words = {
    "space": [
        "orbit",
        "moon",
        "rocket",
        "launch",
        "shuttle",
        "planet",
        "satellite",
        "star",
    ],
    "sport": [
        "game",
        "team",
        "season",
        "player",
        "score",
        "coach",
        "league",
        "goal",
    ],
    "food": [
        "bread",
        "oven",
        "recipe",
        "butter",
        "sugar",
        "flour",
        "cook",
        "taste",
    ],
    "music": [
        "song",
        "band",
        "guitar",
        "album",
        "concert",
        "singer",
        "tune",
        "drum",
    ],
    "law": [
        "court",
        "judge",
        "appeal",
        "lawyer",
        "trial",
        "verdict",
        "crime",
        "jury",
    ],
}
rng = np.random.default_rng(0)
texts, topics = [], []
for _ in range(400):
    mine = rng.choice(list(words), size=rng.integers(1, 3), replace=False)
    texts.append(
        " ".join(rng.choice(words[rng.choice(mine)]) for _ in range(25))
    )
    topics.append([str(name) for name in mine])

# %%
# A tenth of the documents is labeled, with only the first three names.

known = ["space", "sport", "food"]
labels = [
    [name for name in mine if name in known] if rng.random() < 0.1 else []
    for mine in topics
]
vectorizer = CountVectorizer()
X = vectorizer.fit_transform(texts)
model = sf.TopicSupervisedNMF(
    n_free_topics=2, topic_names=known, random_state=0
).fit(X, labels)

# %%

found = model.topics(vectorizer.get_feature_names_out(), n_terms=6)
picture = sf.plotting.term_bars(found, n_terms=6, columns=3)

# %%
# The two free topics are music and law.  :doc:`/guide/guided` compares models
# that use labels.
