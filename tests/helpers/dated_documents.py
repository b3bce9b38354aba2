"""Documents of four topics that live in known months, each topic with ten terms of its own."""

import numpy as np

EVENT, PERSISTENT, YEARLY, LATE = range(4)
MONTHS = 36
EVENT_AT, YEARLY_AT, LATE_FROM = (10, 11), (5, 17, 29), 24
FIRST = np.datetime64("2001-01")


def shares():
    """Return the share of every topic in every month."""
    weights = np.zeros((MONTHS, 4))
    weights[EVENT_AT, EVENT] = 1
    weights[:, PERSISTENT] = 0.5
    weights[YEARLY_AT, YEARLY] = 1
    weights[LATE_FROM:, LATE] = 0.4
    return weights / weights.sum(axis=1, keepdims=True)


def documents(per_month=40, seed=0):
    """Return counts (documents x 40 terms), times (days within the months) and topics."""
    rng = np.random.default_rng(seed)
    months = np.repeat(np.arange(MONTHS), rng.integers(per_month // 2, 3 * per_month // 2, MONTHS))
    topics = np.array([rng.choice(4, p=shares()[month]) for month in months])
    means = np.full((4, 40), 0.05)
    for topic in range(4):
        means[topic, 10 * topic : 10 * topic + 10] = 1
    days = (FIRST + months).astype("datetime64[D]") + rng.integers(0, 28, len(months))
    order = rng.permutation(len(months))
    return rng.poisson(means[topics])[order].astype(float), days[order], topics[order]
