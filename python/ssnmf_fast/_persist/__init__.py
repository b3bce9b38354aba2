"""Saving and loading of models."""
