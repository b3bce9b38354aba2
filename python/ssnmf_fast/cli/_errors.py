"""The error that the command line shows as one line."""

from __future__ import annotations


class UsageError(Exception):
    """Something the user gave cannot be used; the message explains what and how to fix it."""
