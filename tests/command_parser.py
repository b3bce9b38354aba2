"""The parser of the command, as `main` makes it."""

from __future__ import annotations

import argparse
from unittest import mock

from ssnmf_fast.cli import main


def build_parser() -> argparse.ArgumentParser:
    """Return the parser that `main` is about to use."""
    made: list[argparse.ArgumentParser] = []

    def keep(self: argparse.ArgumentParser, *_: object) -> None:
        made.append(self)
        raise SystemExit

    with mock.patch.object(argparse.ArgumentParser, "parse_args", keep):
        main([])
    return made[0]
