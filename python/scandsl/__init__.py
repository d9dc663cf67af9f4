"""Ops for torch: fused kernels of one formula, forward, backward and forward mode, on CPU and CUDA."""

from ._library import load_kernels

load_kernels()

from ._encodings import lrpe_cosine, md_lrpe_angles, md_lrpe_cosine  # noqa: E402
from ._losses import linear_cross_entropy  # noqa: E402
from ._modules import (  # noqa: E402
    DecayedSum,
    LinearCrossEntropyLoss,
    LogCumSumExp,
    LrpeCosine,
    MdLrpeCosine,
)
from ._own import load, load_library  # noqa: E402
from ._scans import chunk_cumsum_decay, decayed_sum, logcumsumexp  # noqa: E402

__all__ = [
    "DecayedSum",
    "LinearCrossEntropyLoss",
    "LogCumSumExp",
    "LrpeCosine",
    "MdLrpeCosine",
    "chunk_cumsum_decay",
    "decayed_sum",
    "linear_cross_entropy",
    "load",
    "load_library",
    "logcumsumexp",
    "lrpe_cosine",
    "md_lrpe_angles",
    "md_lrpe_cosine",
]
__version__ = "0.1.0"
