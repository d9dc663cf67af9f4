"""The ops as loops in plain torch, for inputs of any floating dtype. They share no code with scandsl."""

import torch


def scan(x, dim, step, start, *, reverse=False, exclusive=False, cu_seqlens=None, chunk_size=None):
    """state_t = step(state_{t-1}, t) along dim; (y, final states) like those of the ops.

    start: the state before the first position of each sequence, with a leading dimension of sequences.
    """
    length = x.shape[dim]
    bounds = [0, length] if cu_seqlens is None else cu_seqlens.tolist()
    ys = [None] * length
    finals = []
    for number, (first, end) in enumerate(zip(bounds, bounds[1:])):
        state = start[number]
        for t in range(end - 1, first - 1, -1) if reverse else range(first, end):
            into_chunk = (t - first) % chunk_size if chunk_size else None
            if chunk_size and (into_chunk == chunk_size - 1 if reverse else into_chunk == 0):
                state = start[number]
            before = state
            state = step(before, t)
            ys[t] = before if exclusive else state
        finals.append(state)
    y = torch.stack(ys, dim) if ys else x.clone()
    return y, (finals[0] if cu_seqlens is None else torch.stack(finals))


def states(x, dim, initial_state, cu_seqlens, identity):
    shape = list(x.shape)
    del shape[dim]
    count = 1 if cu_seqlens is None else len(cu_seqlens) - 1
    if initial_state is None:
        return x.new_full([count, *shape], identity)
    return initial_state[None] if cu_seqlens is None else initial_state


def logcumsumexp(x, dim=-1, *, initial_state=None, return_final_state=False, cu_seqlens=None, **direction):
    start = states(x, dim, initial_state, cu_seqlens, -torch.inf)

    def step(state, t):
        return torch.logaddexp(state, x.select(dim, t))

    both = scan(x, dim, step, start, cu_seqlens=cu_seqlens, **direction)
    return both if return_final_state else both[0]


def decayed_sum(
    x,
    decay,
    dim,
    *,
    log_decay=False,
    initial_state=None,
    return_final_state=False,
    cu_seqlens=None,
    **direction,
):
    a = (decay.exp() if log_decay else decay).expand(x.shape)
    start = states(x, dim, initial_state, cu_seqlens, 0.0)
    both = scan(
        x,
        dim,
        lambda h, t: a.select(dim, t) * h + x.select(dim, t),
        start,
        cu_seqlens=cu_seqlens,
        **direction,
    )
    return both if return_final_state else both[0]


def chunk_cumsum_decay(log_decay, *, dim=1, chunk_size=128, cu_seqlens=None, out_dtype=None, **direction):
    start = states(log_decay, dim, None, cu_seqlens, 0.0)
    return scan(
        log_decay,
        dim,
        lambda h, t: h + log_decay.select(dim, t),
        start,
        cu_seqlens=cu_seqlens,
        chunk_size=chunk_size,
        **direction,
    )[0]
