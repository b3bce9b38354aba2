"""The papers' updates of NMF-alpha, CNMF and TS-NMF in plain NumPy, as they are printed."""

import numpy as np
from problems import divergence


def nmf_alpha(X, alpha, S, A, weight, steps):
    """Equations 15 and 16 of Cho and Saul, samples in rows."""
    U = alpha.T @ X
    for _ in range(steps):
        R, D = U / (alpha.T @ S @ A), alpha.T @ S
        up = S.T @ (X / (S @ A)) + weight * D.T @ R
        A = A * up / (S.sum(axis=0) + weight * D.sum(axis=0))[:, None]
        R = U / (alpha.T @ S @ A)
        up = (X / (S @ A)) @ A.T + weight * alpha @ (R @ A.T)
        S = S * up / (np.outer(1 + weight * alpha.sum(axis=1), A.sum(axis=1)))
    return S, A


def nmf_alpha_objective(X, alpha, S, A, weight, loss):
    S, A = S.astype(float), A.astype(float)
    whole = divergence(X, S @ A, loss).sum()
    return whole + weight * divergence(alpha.T @ X, alpha.T @ S @ A, loss).sum()


def constrained(X, G, P, A, loss, steps):
    """The updates of Liu and Wu with S = G P; for the divergence those of models with S = G P."""
    for _ in range(steps):
        S = G @ P
        if loss == "frobenius":
            A = A * (S.T @ X) / (S.T @ S @ A)
            P = P * (G.T @ X @ A.T) / (G.T @ G @ P @ A @ A.T)
        else:
            A = A * (S.T @ (X / (S @ A))) / S.sum(axis=0)[:, None]
            P = P * (G.T @ ((X / (G @ P @ A)) @ A.T)) / np.outer(G.sum(axis=0), A.sum(axis=1))
    return G @ P, A


def topic_supervised(X, T, E, S, A, steps):
    """Equations 16 and 17 of MacMillan and Wilson; E multiplies the loss of a row."""
    E = E[:, None]
    for _ in range(steps):
        W = S * T
        A = A * (W.T @ (X * E)) / (W.T @ ((W @ A) * E))
        up, down = ((X * E) @ A.T) * T, (((W @ A) * E) @ A.T) * T
        S = W * np.divide(up, down, out=np.zeros_like(up), where=down > 0)
    return S, A
