"""What docs/torch.md shows."""

import torch

import scandsl


def test_use() -> None:
    # [doc:use]
    x = torch.randn(2, 1000, 64, requires_grad=True)
    decay = torch.rand(64, requires_grad=True)
    y = scandsl.decayed_sum(x, decay, dim=1)
    y.sum().backward()
    # [/doc:use]
    assert decay.grad.shape == decay.shape
    # [doc:pieces]
    first, state = scandsl.logcumsumexp(x[:, :600], 1, return_final_state=True)
    second = scandsl.logcumsumexp(x[:, 600:], 1, initial_state=state)
    # [/doc:pieces]
    torch.testing.assert_close(torch.cat([first, second], 1), scandsl.logcumsumexp(x, 1))
    # [doc:packed]
    boundaries = torch.tensor([0, 300, 1000])
    y = scandsl.decayed_sum(x, decay, dim=1, cu_seqlens=boundaries)
    # [/doc:packed]
    torch.testing.assert_close(y[:, 300:], scandsl.decayed_sum(x[:, 300:], decay, dim=1))
