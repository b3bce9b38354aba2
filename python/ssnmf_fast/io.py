"""Data on disk, and vectorizers of fits that the command has saved."""

from __future__ import annotations

from ._data.csr_file import CsrFile, open_csr
from ._persist.texts import load_vectorizer

__all__ = ["CsrFile", "load_vectorizer", "open_csr"]
