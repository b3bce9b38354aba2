"""The asv suite: one file for each question."""
