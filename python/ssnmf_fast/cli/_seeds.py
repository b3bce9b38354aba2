"""Seeds of topics in a file of JSON or YAML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._common.optional import require_package
from .._common.text import nfc, short
from ._source import UsageError, open_text, reporting

_YAML = (".yaml", ".yml")
_EXAMPLE = '{"space": ["orbit", "nasa"], "sport": {"game": 2, "team": 1}}'
_HINT = "python -m pip install pyyaml, or give a .json file"


def read_seeds(name: str, encoding: str) -> dict[str, Any]:
    """Return the words, or words and strengths, of every topic."""
    path = Path(name)
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected seeds such as {_EXAMPLE}")
    with reporting(path), open_text(path, encoding) as file:
        text = file.read()
    content = (_of_yaml if path.suffix.lower() in _YAML else _of_json)(text, path)
    if not isinstance(content, dict) or not all(map(_are_seeds, content.values())):
        raise UsageError(f"{path} holds no seeds; expected words by topic, such as {_EXAMPLE}")
    return {str(topic): seeds for topic, seeds in content.items()}


def _require_different(names: Iterable[str], path: Path) -> None:
    """Raise UsageError for a name that a mapping has twice, of which readers take the last."""
    for name, count in Counter(map(nfc, names)).items():
        if count > 1:
            raise UsageError(f"{path} has {short(name)} twice in one mapping; merge the two")


def _of_json(text: str, path: Path) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _require_different((name for name, _ in pairs), path)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=mapping)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON ({error}); expected {_EXAMPLE}") from error


def _of_yaml(text: str, path: Path) -> Any:
    with require_package("PyYAML", _HINT):
        import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _require_different((str(key.value) for key, _ in node.value), path)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # of a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path} is no YAML ({' '.join(str(error).split())})") from error


def _are_seeds(given: Any) -> bool:
    if isinstance(given, Mapping):
        strengths = given.values()
        return all(isinstance(word, str) for word in given) and all(map(_is_number, strengths))
    return isinstance(given, list) and all(isinstance(word, str) for word in given)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
