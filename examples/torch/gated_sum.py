"""An op of one's own in torch: a gated running sum. Its gradients are derived from the formula."""

from pathlib import Path

import torch

# [doc:load]
import scandsl

gated_sum = scandsl.load(Path(__file__).with_name("gated_sum.cpp")).gated_sum
# [/doc:load]

# [doc:use]
gate = torch.randn(4, 1000, 64, requires_grad=True)
x = torch.randn(4, 1000, 64, requires_grad=True)
gated_sum(gate, x).square().mean().backward()
# [/doc:use]

h = torch.zeros(4, 64)
ys = []
for t in range(1000):
    h = torch.sigmoid(gate[:, t]) * h + x[:, t]
    ys.append(torch.nn.functional.silu(h))
expected = torch.autograd.grad(torch.stack(ys, 1).square().mean(), gate)[0]
error = (gate.grad - expected).abs().max() / expected.abs().max()
print(f"the gradient of gate differs from that of a loop in torch by {error:.1e} of the largest")
assert error < 1e-5
