"""Losses, terms, relations, the problem that they make, the fit loop, starts."""
