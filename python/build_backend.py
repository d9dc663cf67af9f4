"""scikit-build-core, and torch where the environment that is installed into has none.

The build needs torch's headers. pip hides that environment from builds, but its torch can be read where it
lies (cmake/scandsl-torch.cmake), which saves the download of another one.
"""

import sysconfig
from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403


def _torch() -> list:
    headers = Path(sysconfig.get_path("purelib"), "torch/include/torch/csrc/stable")
    return [] if headers.exists() else ["torch>=2.10"]


def get_requires_for_build_wheel(config_settings=None):
    return build.get_requires_for_build_wheel(config_settings) + _torch()


def get_requires_for_build_editable(config_settings=None):
    return build.get_requires_for_build_editable(config_settings) + _torch()
