"""The functions that fit: factorize, represent, batches, NMF-alpha, CNMF, variational Bayes."""
