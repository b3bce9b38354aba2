"""Data in the form that kernels take: checks, sparse matrices, files, weights of entries, threads."""
