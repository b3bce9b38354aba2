"""Factorizations of annotated matrices of cells and genes; needs the extra `anndata`."""
