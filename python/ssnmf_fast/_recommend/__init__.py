"""Recommendations from pairs of users and items."""
