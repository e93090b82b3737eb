"""The codec decoder's weights, from a GGUF file of ours or of llama.cpp's converter, as `decoder_graph` computes with them.

Everything becomes float32, whatever the file stores: convolutions get their taps side by side, transposed ones their phases, and
layer scales go into the projection in front of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError
from ouzel.runtimes.llama_cpp.decoder_graph import KERNEL
from ouzel.runtimes.llama_cpp.export_decoder import WAV
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.meta import number
from ouzel.runtimes.meta import sizes

Floats = NDArray[np.float32]
Shapes = dict[str, tuple[int, ...]]

PRE_KERNEL = 3
_SIZES = (
    *("groups", "codebook_size", "samples_per_frame", "sample_rate", "window", "codebook_dim", "latent", "hidden_size"),
    *("layers", "heads", "kv_heads", "head_dim", "inner_size", "channels"),
)
_MOST_STAGES = 16  # of upsampling; a codec has six


@dataclass(frozen=True, slots=True)
class DecoderMeta:
    """An artifact's meta, checked. size: the whole numbers. units: which of each block's three residual units there are."""

    size: dict[str, int]
    epsilon: float
    theta: float
    ratios: tuple[int, ...]
    rates: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]

    @classmethod
    def parse(cls, artifact: Any) -> DecoderMeta:
        """Raises BundleError for what is missing, of the wrong kind or contradicts itself."""
        size, meta = sizes(artifact.stage, artifact.meta, _SIZES), artifact.meta
        try:
            ratios, rates = (tuple(int(n) for n in meta[key]) for key in ("ratios", "rates"))
            units = tuple(tuple(int(j) for j in block) for block in meta["units"])
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"The decoder's meta in the manifest is incomplete ({error!r}); convert the bundle again."
            ) from error
        found = cls(size, number(artifact, "epsilon"), number(artifact, "theta"), ratios, rates, units)
        steps = (*ratios, *rates)
        product = int(np.prod(steps, dtype=np.int64)) if len(steps) <= _MOST_STAGES and min(steps, default=0) > 0 else 0
        fine = product == size["samples_per_frame"] and size["heads"] % size["kv_heads"] == 0 and size["groups"] > 1
        fine &= len(units) == len(rates) and all(set(places) <= {0, 1, 2} for places in units)
        fine &= size["channels"] % (1 << len(rates)) == 0 and size["window"] > 1 and size["head_dim"] % 2 == 0
        if not fine:
            raise BundleError("The decoder's dimensions in the manifest contradict each other; convert the bundle again.")
        return found

    def shapes(self) -> Shapes:
        """Name below "a.gen.wav." -> shape, of all that is read but for the quantiser."""
        s = self.size
        hidden, latent, inner = s["hidden_size"], s["latent"], s["inner_size"]
        queries, keys = s["heads"] * s["head_dim"], s["kv_heads"] * s["head_dim"]
        shapes: Shapes = {"tfm.output_norm.weight": (hidden,)}
        shapes |= _pair("pre_conv", latent, s["codebook_dim"], PRE_KERNEL) | _pair("tfm.in_proj", hidden, latent)
        shapes |= _pair("tfm.out_proj", latent, hidden)
        for i in range(s["layers"]):
            layer = {"ln1": (hidden,), "ln2": (hidden,), "ls1": (hidden,), "ls2": (hidden,), "attn_q": (queries, hidden)}
            layer |= {"attn_k": (keys, hidden), "attn_v": (keys, hidden), "attn_out": (hidden, queries)}
            layer |= {"ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}
            shapes |= {f"tfm.blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        for i, ratio in enumerate(self.ratios):
            at = f"up.blk.{i}."
            shapes |= {f"{at}conv.weight": (latent, latent, ratio), f"{at}conv.bias": (latent,), f"{at}gamma": (latent,)}
            shapes |= _pair(f"{at}dwconv", latent, 1, KERNEL) | _pair(f"{at}norm", latent)
            shapes |= _pair(f"{at}pw1", 4 * latent, latent) | _pair(f"{at}pw2", latent, 4 * latent)
        shapes |= _pair("dac.entry", s["channels"], latent, KERNEL)
        wide = s["channels"]
        for i, rate in enumerate(self.rates):
            at, out = f"dac.blk.{i}.", wide // 2
            shapes |= _snake(f"{at}snake", wide) | {f"{at}conv.weight": (wide, out, 2 * rate), f"{at}conv.bias": (out,)}
            for j in self.units[i]:
                unit = f"{at}res.{j}."
                shapes |= _snake(f"{unit}act1", out) | _snake(f"{unit}act2", out)
                shapes |= _pair(f"{unit}conv1", out, out, KERNEL) | _pair(f"{unit}conv2", out, out, 1)
            wide = out
        return shapes | _snake("dac.post_snake", wide) | _pair("dac.post_conv", 1, wide, KERNEL)


class Quantiser:
    """Codes to rows: two codebook branches, each with a projection. In numpy: it is a few thousand multiplications a frame."""

    def __init__(self, file: GgufFile, meta: DecoderMeta) -> None:
        """BundleError when the codebooks are of another model."""
        groups, codes, wide = (meta.size[key] for key in ("groups", "codebook_size", "codebook_dim"))
        self._groups = groups
        self._books, self._projections = [], []
        for branch, count in (("first", 1), ("rest", groups - 1)):
            book, projection = (f"{WAV}quant.{branch}.{part}.weight" for part in ("codebook", "out_proj"))
            width = file.require(book).shape[-1]
            file.check({book: (count, codes, width), projection: (wide, width)})
            self._books.append(file.floats(book).reshape(count, codes, width))
            self._projections.append(np.ascontiguousarray(file.floats(projection).reshape(wide, width).T))

    def rows(self, codes: NDArray[np.int64]) -> Floats:
        """codes (n, groups) within the codebooks -> (n, codebook_dim)."""
        (first, rest), (to_first, to_rest) = self._books, self._projections
        places = np.arange(self._groups - 1)
        rows: Floats = first[0, codes[:, 0]] @ to_first + rest[places, codes[:, 1:]].sum(1) @ to_rest
        return rows


def read_weights(file: GgufFile, meta: DecoderMeta, place: Callable[[str, Floats], None]) -> None:
    """Check the file, then call place(name, array) for each weight of the graph. BundleError for a file of another model."""
    shapes = meta.shapes()
    file.check({f"{WAV}{name}": shape for name, shape in shapes.items()})

    def read(name: str) -> Floats:
        return file.floats(f"{WAV}{name}").reshape(shapes[name])

    scales = {f"tfm.blk.{i}.{p}.weight": f"tfm.blk.{i}.{s}.weight" for i in range(meta.size["layers"]) for p, s in _SCALED}
    for i in range(len(meta.ratios)):
        scales |= {f"up.blk.{i}.pw2.{part}": f"up.blk.{i}.gamma" for part in ("weight", "bias")}
    for name, shape in shapes.items():
        if name in scales.values():
            continue
        values, kind = read(name), name.rpartition(".")[2]
        if name in scales:
            scale = read(scales[name])
            values = values * (scale[:, None] if kind == "weight" else scale)
        if kind == "alpha" and (values == 1).all():
            continue  # a factor of one is no operator
        if name.endswith("dwconv.weight"):
            values = values[:, 0].T
        elif len(shape) == 3 and ".blk." in name and name.endswith(".conv.weight"):
            values = _phases(values, 1 if name.startswith("up.") else 2)
        elif len(shape) == 3:
            values = values.transpose(0, 2, 1).reshape(shape[0], -1)
        elif name.endswith(".conv.bias"):
            weight = shapes[name.replace("bias", "weight")]
            values = np.tile(values, weight[2] // (1 if name.startswith("up.") else 2))
        place(name, np.ascontiguousarray(values))


_SCALED = (("attn_out", "ls1"), ("ffn_down", "ls2"))


def _phases(weight: Floats, columns: int) -> Floats:
    """(in, out, columns * stride) of a transposed convolution -> (stride * out, columns * in), the newest column last."""
    wide, out, kernel = weight.shape
    taps = weight.reshape(wide, out, columns, kernel // columns)[:, :, ::-1]
    return taps.transpose(3, 1, 2, 0).reshape(-1, columns * wide)


def _pair(name: str, *shape: int) -> Shapes:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _snake(name: str, wide: int) -> Shapes:
    return {f"{name}.alpha": (wide,), f"{name}.beta": (wide,)}
