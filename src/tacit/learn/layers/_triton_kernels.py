"""Triton kernels: norms by Gram matrices, and norms and weighted sums of convolutions.

Operands are rounded to bfloat16 and products are summed in float32, so a norm and the sum that it bounds see
the same rounded values.
"""

# mypy: ignore-errors

from __future__ import annotations

try:
    import triton
    import triton.language as tl
except ImportError:  # the module can be read without Triton, and nothing in it is called
    from types import SimpleNamespace

    triton, tl = SimpleNamespace(jit=lambda kernel: kernel), None


@triton.jit
def gram_norms(
    left,
    right,
    squares,
    lengths,
    extremes,
    rows,
    inputs,
    outputs,
    tiles,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
    KIND: tl.constexpr,
):
    """Add up products of two Gram matrices over one tile of their lower triangle.

    The largest squared length of a row of either operand goes to ``extremes``.
    """
    unit = tl.program_id(0).to(tl.int64)
    pair = tl.program_id(1)
    high = ((tl.sqrt(8.0 * pair.to(tl.float32) + 1.0) - 1.0) / 2.0).to(tl.int32)
    high = tl.where(high * (high + 1) // 2 > pair, high - 1, high)
    high = tl.where((high + 1) * (high + 2) // 2 <= pair, high + 1, high)
    low = pair - high * (high + 1) // 2
    first = high * BLOCK + tl.arange(0, BLOCK)
    second = low * BLOCK + tl.arange(0, BLOCK)
    depth = tl.arange(0, DEPTH)
    product = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    base = left + unit * rows * inputs
    for start in range(0, inputs, DEPTH):
        inside = (start + depth < inputs)[None, :]
        a = tl.load(
            base + first[:, None] * inputs + start + depth[None, :],
            mask=(first < rows)[:, None] & inside, other=0.0,
        ).to(KIND)  # fmt: skip
        b = tl.load(
            base + second[:, None] * inputs + start + depth[None, :],
            mask=(second < rows)[:, None] & inside, other=0.0,
        ).to(KIND)  # fmt: skip
        product += tl.dot(a, tl.trans(b))
    other = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    base = right + unit * rows * outputs
    for start in range(0, outputs, DEPTH):
        inside = (start + depth < outputs)[None, :]
        a = tl.load(
            base + first[:, None] * outputs + start + depth[None, :],
            mask=(first < rows)[:, None] & inside, other=0.0,
        ).to(KIND)  # fmt: skip
        b = tl.load(
            base + second[:, None] * outputs + start + depth[None, :],
            mask=(second < rows)[:, None] & inside, other=0.0,
        ).to(KIND)  # fmt: skip
        other += tl.dot(a, tl.trans(b))
    on_diagonal = first[:, None] == second[None, :]
    largest = tl.max(tl.where(on_diagonal, tl.maximum(product, other), 0.0))
    tl.store(extremes + unit * tiles + pair, largest)
    product *= other
    twice = tl.where(high == low, 1.0, 2.0)
    tl.store(squares + unit * tiles + pair, twice * tl.sum(product))
    length = tl.sum(tl.sqrt(tl.where(on_diagonal, tl.maximum(product, 0.0), 0.0)))
    tl.store(lengths + unit * tiles + pair, length)


@triton.jit
def _window(x, row, column, channel, height, width, channels, valid, KIND: tl.constexpr):
    """Load what one tap of the kernel sees at some positions; outside of the image it sees zeros."""
    inside = valid & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return tl.load(
        x + (row * width + column)[:, None] * channels + channel[None, :],
        mask=inside[:, None] & (channel < channels)[None, :],
        other=0.0,
    ).to(KIND)


@triton.jit
def convolution_norms(
    x, grad, squares,
    height, width, out_height, out_width, channels, filters, channel_blocks, per_unit,
    step_row, step_column, pad_row, pad_column, spread_row, spread_column,
    COLUMNS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr, FILTERS: tl.constexpr,
    CHANNELS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Form a block of one unit's weight gradient for some taps, and store the sum of its squares."""
    unit = tl.program_id(0).to(tl.int64)
    taps = tl.program_id(1)
    block = tl.program_id(2)
    kernel_row = taps // (COLUMNS // TAPS)
    kernel_column = (taps % (COLUMNS // TAPS)) * TAPS
    chosen = (block // channel_blocks) * FILTERS + tl.arange(0, FILTERS)
    channel = (block % channel_blocks) * CHANNELS + tl.arange(0, CHANNELS)
    positions = out_height * out_width
    first = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    second = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    third = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    for example in range(per_unit):
        x_base = x + (unit * per_unit + example) * height * width * channels
        grad_base = grad + (unit * per_unit + example) * positions * filters
        for start in range(0, positions, BLOCK):
            position = start + tl.arange(0, BLOCK)
            valid = position < positions
            row = (position // out_width) * step_row - pad_row + kernel_row * spread_row
            column = (position % out_width) * step_column - pad_column + kernel_column * spread_column
            outer = tl.load(
                grad_base + position[:, None] * filters + chosen[None, :],
                mask=valid[:, None] & (chosen < filters)[None, :], other=0.0,
            ).to(KIND)  # fmt: skip
            outer = tl.trans(outer)
            first += tl.dot(
                outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
            )
            if TAPS == 3:
                column += spread_column
                second += tl.dot(
                    outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
                )
                column += spread_column
                third += tl.dot(
                    outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
                )
    total = tl.sum(first * first)
    if TAPS == 3:
        total += tl.sum(second * second) + tl.sum(third * third)
    place = (unit * tl.num_programs(1) + taps) * tl.num_programs(2) + block
    tl.store(squares + place, total)


@triton.jit
def convolution_sums(
    x, grad, factors, sums,
    examples, share, height, width, out_height, out_width, channels, filters, channel_blocks,
    step_row, step_column, pad_row, pad_column, spread_row, spread_column,
    COLUMNS: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr, FILTERS: tl.constexpr,
    CHANNELS: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Add up weight gradients of a share of the examples, each times its factor, in float32.

    A factor of zero drops its example, whatever its gradient is.
    """
    part = tl.program_id(0)
    taps = tl.program_id(1)
    block = tl.program_id(2)
    kernel_row = taps // (COLUMNS // TAPS)
    kernel_column = (taps % (COLUMNS // TAPS)) * TAPS
    chosen = (block // channel_blocks) * FILTERS + tl.arange(0, FILTERS)
    channel = (block % channel_blocks) * CHANNELS + tl.arange(0, CHANNELS)
    positions = out_height * out_width
    total_first = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    total_second = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    total_third = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
    for number in range(part * share, tl.minimum((part + 1) * share, examples)):
        example = part.to(tl.int64) * 0 + number
        factor = tl.load(factors + number)
        x_base = x + example * height * width * channels
        grad_base = grad + example * positions * filters
        first = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
        second = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
        third = tl.zeros((FILTERS, CHANNELS), dtype=tl.float32)
        for start in range(0, positions, BLOCK):
            position = start + tl.arange(0, BLOCK)
            valid = position < positions
            row = (position // out_width) * step_row - pad_row + kernel_row * spread_row
            column = (position % out_width) * step_column - pad_column + kernel_column * spread_column
            outer = tl.load(
                grad_base + position[:, None] * filters + chosen[None, :],
                mask=valid[:, None] & (chosen < filters)[None, :], other=0.0,
            ).to(KIND)  # fmt: skip
            outer = tl.trans(outer)
            first += tl.dot(
                outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
            )
            if TAPS == 3:
                column += spread_column
                second += tl.dot(
                    outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
                )
                column += spread_column
                third += tl.dot(
                    outer, _window(x_base, row, column, channel, height, width, channels, valid, KIND)
                )
        total_first += tl.where(factor > 0, factor * first, 0.0)
        if TAPS == 3:
            total_second += tl.where(factor > 0, factor * second, 0.0)
            total_third += tl.where(factor > 0, factor * third, 0.0)
    inside = (chosen < filters)[:, None] & (channel < channels)[None, :]
    tap = kernel_row * COLUMNS + kernel_column
    place = (part * tl.num_programs(1) * TAPS + tap) * filters * channels
    spot = sums + place + chosen[:, None] * channels + channel[None, :]
    tl.store(spot, total_first, mask=inside)
    if TAPS == 3:
        tl.store(spot + filters * channels, total_second, mask=inside)
        tl.store(spot + 2 * filters * channels, total_third, mask=inside)


@triton.jit
def position_norms(
    x, grad, squares, lengths, extremes,
    height, width, out_height, out_width, channels, filters,
    step_row, step_column, pad_row, pad_column, spread_row, spread_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Find the norm of one example's weight gradient from inner products of its few positions."""
    example = tl.program_id(0).to(tl.int64)
    position = tl.arange(0, BLOCK)
    positions = out_height * out_width
    valid = position < positions
    depth = tl.arange(0, DEPTH)
    outer = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    base = grad + example * positions * filters
    for start in range(0, filters, DEPTH):
        value = tl.load(
            base + position[:, None] * filters + start + depth[None, :],
            mask=valid[:, None] & (start + depth < filters)[None, :], other=0.0,
        ).to(KIND)  # fmt: skip
        outer = tl.dot(value, tl.trans(value), outer)
    inner = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    base = x + example * height * width * channels
    for tap in range(ROWS * COLUMNS):
        row = (position // out_width) * step_row - pad_row + (tap // COLUMNS) * spread_row
        column = (position % out_width) * step_column - pad_column + (tap % COLUMNS) * spread_column
        for start in range(0, channels, DEPTH):
            value = _window(base, row, column, start + depth, height, width, channels, valid, KIND)
            inner = tl.dot(value, tl.trans(value), inner)
    product = outer * inner
    on_diagonal = position[:, None] == position[None, :]
    tl.store(extremes + example, tl.max(tl.where(on_diagonal, tl.maximum(outer, inner), 0.0)))
    tl.store(squares + example, tl.sum(product))
    tl.store(lengths + example, tl.sum(tl.sqrt(tl.where(on_diagonal, tl.maximum(product, 0.0), 0.0))))


@triton.jit
def line_norms(
    x, grad, squares,
    height, width, out_height, out_width, channels, filters, filter_blocks, per_unit,
    step_row, step_column, pad_row, pad_column, spread_row, spread_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, FILTERS: tl.constexpr,
    LINES: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Form a block of one unit's weight gradient where channels are few: taps and channels are its lines."""
    unit = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    line = (block // filter_blocks) * LINES + tl.arange(0, LINES)
    chosen = (block % filter_blocks) * FILTERS + tl.arange(0, FILTERS)
    tap = line // channels
    line_row = (tap // COLUMNS) * spread_row - pad_row
    line_column = (tap % COLUMNS) * spread_column - pad_column
    known = line < ROWS * COLUMNS * channels
    positions = out_height * out_width
    total = tl.zeros((LINES, FILTERS), dtype=tl.float32)
    for example in range(per_unit):
        x_base = x + (unit * per_unit + example) * height * width * channels
        grad_base = grad + (unit * per_unit + example) * positions * filters
        for start in range(0, positions, BLOCK):
            position = start + tl.arange(0, BLOCK)
            valid = position < positions
            outer = tl.load(
                grad_base + position[:, None] * filters + chosen[None, :],
                mask=valid[:, None] & (chosen < filters)[None, :], other=0.0,
            ).to(KIND)  # fmt: skip
            row = ((position // out_width) * step_row)[:, None] + line_row[None, :]
            column = ((position % out_width) * step_column)[:, None] + line_column[None, :]
            inside = valid[:, None] & known[None, :] & (row >= 0) & (row < height)
            value = tl.load(
                x_base + (row * width + column) * channels + (line % channels)[None, :],
                mask=inside & (column >= 0) & (column < width), other=0.0,
            ).to(KIND)  # fmt: skip
            total = tl.dot(tl.trans(value), outer, total)
    tl.store(squares + unit * tl.num_programs(1) + block, tl.sum(total * total))
