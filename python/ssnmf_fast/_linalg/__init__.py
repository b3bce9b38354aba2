"""Tall-skinny matrices, linear operators, the randomized SVD."""
