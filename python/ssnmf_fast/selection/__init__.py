"""Choosing the number of components, and how far to trust them."""
