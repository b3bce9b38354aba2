"""Matrices on disk, and the vectorizers that the command saves."""

from __future__ import annotations

from ._data.csr_file import CsrFile, open_csr
from ._persist.texts import load_vectorizer

__all__ = ["CsrFile", "load_vectorizer", "open_csr"]
