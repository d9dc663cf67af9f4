"""Agreement with a float64 reference, as close as the rounding of a dtype allows."""

from __future__ import annotations

import torch


def roundoff(dtype: torch.dtype) -> float:
    """Half an ulp of the stored result, and a few dozen operations in float32 (float64 for float64)."""
    arithmetic = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    return torch.finfo(dtype).eps / 2 + 32 * arithmetic


def assert_close(got: torch.Tensor, expected: torch.Tensor, size: float | None = None) -> None:
    """Each element within the roundoff of its dtype, relative to `size` (the largest of `expected`)."""
    assert got.shape == expected.shape
    finite = expected.isfinite()
    assert torch.equal(got.isfinite(), finite)
    assert torch.equal(got.double()[~finite].nan_to_num(), expected[~finite].nan_to_num())
    if not finite.any():
        return
    size = expected[finite].abs().max().item() if size is None else size
    error = (got.double() - expected)[finite].abs().max().item()
    smallest = torch.finfo(got.dtype).tiny * torch.finfo(got.dtype).eps
    assert error <= roundoff(got.dtype) * size + smallest, f"{error:.3g} at size {size:.3g} in {got.dtype}"
