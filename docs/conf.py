"""Sphinx configuration: `sphinx-build docs docs/_build`."""

from ssnmf_fast import __version__ as release

project = "ssnmf_fast"
author = "The ssnmf_fast contributors"
version = release
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "alabaster"
