"""Data as the kernels take them: checks, sparse matrices, files, weights of entries, threads."""
