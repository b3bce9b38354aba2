"""Losses, terms, relations, problems, the fit loop, starts."""
