"""Builds the pages of this folder as a site: python3 -m sphinx -W docs build/docs (see requirements.txt)."""

project = "scandsl"
author = "the scandsl authors"
copyright = "the scandsl authors, Apache-2.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
# Colons open directives, so that backticks hold quoted code only; scripts/check_docs.py reads the latter.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_title = "scandsl"
