"""Data for the kernels: checks, sparse matrices, files, weights of entries, threads."""
