"""The choice of the compiled kernels, and the same kernels in NumPy."""
