"""Utilities for the whole package: types, warnings, texts, files."""
