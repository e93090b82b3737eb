"""The code predictor on ggml: one graph a codebook over a fixed cache, our own choice of codes (PredictorCore).

llama.cpp's multimodal library has a predictor of its own, but it ignores the temperature, draws from a generator inside its
context and plans the whole graph anew for each frame. These graphs are planned once and give the logits out, from the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling
from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp.ggml import Arena, Backend, Graph, Tensor
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.library import library
from ouzel.runtimes.llama_cpp.meta import number, threads_of
from ouzel.runtimes.meta import sizes
from ouzel.sampling import choose_residual

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

_NEOX = 2  # ggml's name for rotating the two halves of a head against each other
_NODES_A_LAYER, _NODES_BESIDE = 64, 64  # generous: operators and views
_AT = "a.gen.code."
_SIZES = (
    "input_size",
    "hidden_size",
    "vocab_size",
    "groups",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "inner_size",
    "positions",
)


class LlamaPredictor:
    """PredictorCore. One thread at a time, `interrupt` aside; nothing of a frame outlives it."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file and the bundle's embedding tables. BundleError when they do not fit."""
        self.meta = sizes(artifact.stage, artifact.meta, _SIZES)
        self._epsilon, self._theta = number(artifact, "epsilon"), number(artifact, "theta")
        self._steps = self.meta["groups"] - 1
        if self.meta["positions"] != self.meta["groups"] + 1 or self.meta["heads"] % self.meta["kv_heads"]:
            raise BundleError("The predictor's dimensions in the manifest contradict each other; convert the bundle again.")
        # As plain arrays over the mapped files: only rows that are used are ever read.
        self._codec = bundle.array("tables/codec.npy").view(np.ndarray)
        self._residual = bundle.array("tables/residual.npy").view(np.ndarray)
        wanted = (self._steps, self.meta["vocab_size"], self.meta["input_size"])
        if self._residual.shape != wanted or self._codec.shape[1:] != wanted[2:]:
            raise BundleError(
                f"The bundle's embedding tables are {self._codec.shape} and {self._residual.shape}, but the code predictor needs "
                f"(codes, {wanted[2]}) and {wanted}; convert the bundle again."
            )
        self._file = GgufFile(bundle.path(artifact.files[0]))
        shapes = self._shapes()
        self._file.check(shapes)
        self._backend = Backend(library(), threads_of(options))
        self._arena = Arena(self._backend, len(shapes) + self._steps + 2 * self.meta["layers"] + 8)
        self._weights = self._arena.weights(self._file, list(shapes))
        self._build()

    def interrupt(self) -> None:
        """End the frame that is computed on another thread, if any, at its next operator; it raises SynthesisError there."""
        self._backend.switch.stop()

    def frame(
        self, hidden: NDArray[np.float32], code0: int, sampling: SubtalkerSampling, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,), from hidden float32 (input size,) and the sampled codebook-0 id.

        SynthesisError when the logits of any codebook are not finite, or on an interruption.
        """
        if hidden.shape != self._first.shape[1:] or not 0 <= code0 < len(self._codec):
            raise SynthesisError(
                f"The code predictor takes a hidden vector of {self.meta['input_size']} values and an id from 0 to "
                f"{len(self._codec) - 1}, not {hidden.shape} and {code0}."
            )
        self._backend.switch.reset()
        self._first[0] = hidden
        self._first[1] = self._codec[code0]
        codes = np.empty(self._steps, np.int64)
        for q, graph in enumerate(self._graphs):
            graph.run()
            codes[q] = code = choose_residual(self._logits, sampling, float(uniforms[q]))
            self._row[0] = self._residual[q, code]
        return codes

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        meta = self.meta
        hidden, inner, width = meta["hidden_size"], meta["inner_size"], meta["head_dim"]
        queries, keys = meta["heads"] * width, meta["kv_heads"] * width
        shapes: dict[str, tuple[int, ...]] = {
            f"{_AT}output_norm.weight": (hidden,),
            f"{_AT}head.weight": (self._steps, meta["vocab_size"], hidden),
        }
        if f"{_AT}proj_in.weight" in self._file.tensors or meta["input_size"] != hidden:
            shapes[f"{_AT}proj_in.weight"] = (hidden, meta["input_size"])
            if f"{_AT}proj_in.bias" in self._file.tensors:
                shapes[f"{_AT}proj_in.bias"] = (hidden,)
        for i in range(meta["layers"]):
            layer = {"ln1": (hidden,), "attn_q": (queries, hidden), "attn_k": (keys, hidden), "attn_v": (keys, hidden)}
            layer |= {"attn_q_norm": (width,), "attn_k_norm": (width,), "attn_out": (hidden, queries), "ln2": (hidden,)}
            layer |= {"ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}
            shapes |= {f"{_AT}blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        return shapes

    def _build(self) -> None:
        meta, arena = self.meta, self._arena
        keys = meta["kv_heads"] * meta["head_dim"]
        self._first_tensor, self._first = arena.array((2, meta["input_size"]))
        self._row_tensor, self._row = arena.array((1, meta["input_size"]))
        self._logits_tensor, self._logits = arena.array((meta["vocab_size"],))
        self._positions, positions = arena.array((meta["positions"],), np.int32)
        positions[:] = np.arange(meta["positions"])
        self._causal, causal = arena.array((2, 2))
        causal[0, 1] = -np.inf
        # Values lie transposed: what is summed over has to be contiguous.
        caches = [(arena.array((meta["positions"], keys)), arena.array((keys, meta["positions"]))) for _ in range(meta["layers"])]
        self._caches = [(k[0], v[0]) for k, v in caches]
        self.cache_arrays = [array for pair in caches for _, array in pair]
        self._graphs = [self._graph(q) for q in range(self._steps)]

    def _graph(self, step: int) -> Graph:
        """Sub-step `step`: two rows in the first, one later, at the positions behind those of the sub-steps before."""
        meta, graph = self.meta, Graph(self._arena, _NODES_A_LAYER * self.meta["layers"] + _NODES_BESIDE)
        count, past = (2, 0) if step == 0 else (1, step + 1)
        x = self._row_tensor if step else self._first_tensor
        hidden = meta["hidden_size"]
        if f"{_AT}proj_in.weight" in self._weights:
            x = graph.mul_mat(self._weights[f"{_AT}proj_in.weight"], x)
            if f"{_AT}proj_in.bias" in self._weights:
                x = graph.add(x, self._weights[f"{_AT}proj_in.bias"])
        for i in range(meta["layers"]):
            x = self._layer(graph, i, x, count, past)
        x = graph.view_2d(x, hidden, 1, 4 * hidden, 4 * hidden * (count - 1))
        x = graph.normed(x, self._weights[f"{_AT}output_norm.weight"], self._epsilon)
        graph.store(graph.mul_mat(self._weights[f"{_AT}head.weight.{step}"], x), self._logits_tensor)
        graph.finish()
        return graph

    def _layer(self, graph: Graph, index: int, x: Tensor, count: int, past: int) -> Tensor:
        """x (count, hidden) at positions past..past+count-1."""
        meta, (all_keys, all_values) = self.meta, self._caches[index]
        width, heads, kv_heads, rows = meta["head_dim"], meta["heads"], meta["kv_heads"], meta["positions"]
        end, keys = past + count, kv_heads * width
        w = {name: self._weights[f"{_AT}blk.{index}.{name}.weight"] for name in _LAYER}
        h = graph.normed(x, w["ln1"], self._epsilon)
        at = graph.view_1d(self._positions, count, 4 * past)

        def turned(projection: str, number: int, norm: str) -> Tensor:
            y = graph.reshape_3d(graph.mul_mat(w[projection], h), width, number, count)
            y = graph.normed(y, w[norm], self._epsilon)
            return int(graph.rope_ext(y, at, None, width, _NEOX, 0, self._theta, 1.0, 0.0, 1.0, 0.0, 0.0))

        query, key = turned("attn_q", heads, "attn_q_norm"), turned("attn_k", kv_heads, "attn_k_norm")
        value = graph.mul_mat(w["attn_v"], h)
        graph.store(key, graph.view_2d(all_keys, keys, count, 4 * keys, 4 * keys * past))
        graph.store(graph.transpose(value), graph.view_2d(all_values, count, keys, 4 * rows, 4 * past))
        key = graph.permute(graph.view_3d(all_keys, width, kv_heads, end, 4 * width, 4 * keys, 0), 0, 2, 1, 3)
        value = graph.view_3d(all_values, end, width, kv_heads, 4 * rows, 4 * rows * width, 0)
        scores = graph.mul_mat(key, graph.permute(query, 0, 2, 1, 3))
        scores = graph.soft_max_ext(scores, self._causal if count > 1 else None, width**-0.5, 0.0)
        mixed = graph.cont(graph.permute(graph.mul_mat(value, scores), 0, 2, 1, 3))
        x = graph.add(x, graph.mul_mat(w["attn_out"], graph.reshape_2d(mixed, width * heads, count)))
        h = graph.normed(x, w["ln2"], self._epsilon)
        inner = graph.swiglu_split(graph.mul_mat(w["ffn_gate"], h), graph.mul_mat(w["ffn_up"], h))
        return int(graph.add(x, graph.mul_mat(w["ffn_down"], inner)))


_LAYER = (
    "ln1",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_q_norm",
    "attn_k_norm",
    "attn_out",
    "ln2",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
)
