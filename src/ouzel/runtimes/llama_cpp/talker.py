"""The talker on llama.cpp: a context an utterance, rows in, hidden vector and codebook-0 logits out (TalkerCore)."""

from __future__ import annotations

import ctypes as C
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Rows
from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp.export import ARCHITECTURE, IDS
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import FP32
from ouzel.runtimes.llama_cpp.library import Library, library
from ouzel.runtimes.llama_cpp.meta import threads_of
from ouzel.runtimes.llama_cpp.structs import Batch
from ouzel.runtimes.llama_cpp.switch import Switch
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.talkers import SizedTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

_GRAIN = 256  # rows; llama.cpp rounds capacities up to it
_POOLED = 2  # freed contexts kept for the next states
_ROWS = 64  # of a prompt computed at once: bounds the buffers, as logits are made of each
_SECTIONS = 4  # positions of a row, all equal
_SEQUENCE = 0
_F32, _F16 = 0, 1  # enum ggml_type
_NO_FLASH, _FLASH_IF_POSSIBLE = 0, -1
_ABORTED = 2


class _Context:
    """One llama_context with room for `capacity` rows; freed with its last reference, before the model."""

    def __init__(self, core: LlamaTalker, capacity: int) -> None:
        lib = core.lib
        self._model = core.model  # outlives the context
        params = lib.llama_context_default_params()
        params.n_ctx = self.capacity = capacity
        params.n_batch = params.n_ubatch = min(_ROWS, capacity)
        params.n_threads = params.n_threads_batch = core.threads
        exact = core.weights == FP32
        params.type_k = params.type_v = _F32 if exact else _F16
        params.flash_attn_type = _NO_FLASH if exact else _FLASH_IF_POSSIBLE
        self.pointer = lib.llama_init_from_model(core.model.pointer, params)
        if not self.pointer:
            raise SynthesisError(f"llama.cpp could not set up a context of {capacity} rows: {lib.why()}.")
        weakref.finalize(self, lib.llama_free, self.pointer).atexit = False
        lib.llama_set_embeddings(self.pointer, True)
        lib.llama_set_abort_callback(self.pointer, core.switch.callback, core.switch.data)
        self.memory = lib.llama_get_memory(self.pointer)


class _Model:
    """One loaded model file."""

    def __init__(self, lib: Library, file: GgufFile) -> None:
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        self.pointer = lib.llama_model_load_from_file(str(file.path).encode(), params)
        if not self.pointer:
            raise BundleError(f"llama.cpp cannot load {file.path}: {lib.why()}. Convert the bundle again.")
        weakref.finalize(self, lib.llama_model_free, self.pointer).atexit = False


class LlamaTalkerState:
    """Rows of one utterance so far: `length` of them, in a context that no other live state has."""

    def __init__(self, context: _Context, pool: list[_Context]) -> None:
        self.length = 0
        self._held = [context]  # a list, so that the finalizer gives back what a growth has put there
        weakref.finalize(self, _give_back, self._held, pool).atexit = False

    @property
    def context(self) -> _Context:
        return self._held[0]

    def replace(self, context: _Context) -> None:
        """Go on in another context, into which the rows have been copied."""
        self._held[0] = context


class LlamaTalker(SizedTalker):
    """TalkerCore over a GGUF file of llama.cpp's architecture for this talker. One thread at a time, `interrupt` aside."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it is of another model, lacks tensors or is damaged."""
        keys = ("hidden_size", "vocab_size", "layers", "heads", "kv_heads", "head_dim", "inner_size", "max_positions")
        self.meta = sizes(artifact.stage, artifact.meta, keys)
        self.weights, self.threads = artifact.weights, threads_of(options)
        self.lib, self.switch = library(), Switch()
        file = GgufFile(bundle.path(artifact.files[0]))
        self._check(file)
        self.model = _Model(self.lib, file)
        self._vocabulary = self.lib.llama_vocab_n_tokens(self.lib.llama_model_get_vocab(self.model.pointer))
        self._pool: list[_Context] = []

    def start(self, positions: int) -> LlamaTalkerState:
        """An empty state with room for at least `positions` rows; it doubles as needed, up to max_positions."""
        return LlamaTalkerState(self._take(positions), self._pool)

    def interrupt(self) -> None:
        """End the forward pass that runs on another thread, if any, at its next operator; it raises SynthesisError there."""
        self.switch.stop()

    def forward(self, state: LlamaTalkerState, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append rows float32 (n, hidden), n >= 1; (hidden (H,), logits (V,)) of the last one, fresh arrays.

        SynthesisError for rows of another shape, a full context, an interruption or a failure; the state is then as before.
        """
        count, length = len(rows), self._length_with(state.length, rows)
        if length > state.context.capacity:
            state.replace(self._grown(state.context, max(length, 2 * state.context.capacity)))
        given, context = np.ascontiguousarray(rows, np.float32), state.context
        self.switch.reset()
        for start in range(0, count, _ROWS):
            piece = given[start : start + _ROWS]
            code = self._decode(context, piece, state.length + start)
            if code:
                self.lib.llama_memory_seq_rm(context.memory, _SEQUENCE, state.length, -1)
                if code == _ABORTED:
                    raise SynthesisError("The talker was interrupted.")
                raise SynthesisError(f"llama.cpp failed in the talker (code {code}): {self.lib.why()}.")
        state.length = length
        hidden = _copied(self.lib.llama_get_embeddings_ith(context.pointer, -1), self.hidden_size)
        # A file of llama.cpp's converter has the text's ids in front of the codec's, one of a small talker fills up behind them.
        logits = _copied(self.lib.llama_get_logits_ith(context.pointer, -1), self._vocabulary)[-IDS:][: self.vocab_size]
        return hidden, logits

    def _decode(self, context: _Context, rows: Rows, position: int) -> int:
        count = len(rows)
        positions = np.tile(np.arange(position, position + count, dtype=np.int32), _SECTIONS)
        asked = np.ones(count, np.int8)  # it gives hidden vectors for all rows or for none
        batch = Batch(n_tokens=count, embd=rows.ctypes.data, pos=positions.ctypes.data, logits=asked.ctypes.data)
        return int(self.lib.llama_decode(context.pointer, batch))

    def _take(self, positions: int) -> _Context:
        capacity = -(-max(positions, 1) // _GRAIN) * _GRAIN
        fitting = [context for context in self._pool if capacity <= context.capacity <= 2 * capacity]
        for chosen in sorted(fitting, key=lambda context: context.capacity):
            try:
                self._pool.remove(chosen)
            except ValueError:  # a state that another thread dropped just now has pushed it out
                continue
            self.lib.llama_memory_clear(chosen.memory, False)
            return chosen
        return _Context(self, capacity)

    def _grown(self, old: _Context, positions: int) -> _Context:
        """A context with more room that holds the rows of `old`, which goes to the pool."""
        new = self._take(min(positions, self.max_positions))
        size = self.lib.llama_state_seq_get_size(old.pointer, _SEQUENCE)
        kept = np.empty(size, np.uint8)
        copied = self.lib.llama_state_seq_get_data(old.pointer, kept.ctypes.data, size, _SEQUENCE)
        if copied != size or not self.lib.llama_state_seq_set_data(new.pointer, kept.ctypes.data, size, _SEQUENCE):
            raise SynthesisError(f"llama.cpp could not move an utterance into a larger context: {self.lib.why()}.")
        _give_back([old], self._pool)
        return new

    def _check(self, file: GgufFile) -> None:
        architecture = file.values.get("general.architecture")
        if architecture != ARCHITECTURE:
            raise BundleError(
                f"{file.path} is a GGUF file of {architecture!r}, not of a {ARCHITECTURE} talker; convert the bundle again."
            )
        meta = self.meta
        hidden, inner, width = meta["hidden_size"], meta["inner_size"], meta["head_dim"]
        queries, keys = meta["heads"] * width, meta["kv_heads"] * width
        stated = {
            "block_count": meta["layers"],
            "embedding_length": hidden,
            "feed_forward_length": inner,
            "attention.head_count": meta["heads"],
            "attention.head_count_kv": meta["kv_heads"],
            "attention.key_length": width,
            "attention.value_length": width,
        }
        for key, wanted in stated.items():
            found = file.values.get(f"{ARCHITECTURE}.{key}")
            if found != wanted:
                raise BundleError(f"{file.path} is of another model: its {key} is {found}, not {wanted} as the manifest says.")
        shapes: dict[str, tuple[int, ...]] = {"output_norm.weight": (hidden,), "output.weight": (IDS, hidden)}
        for i in range(meta["layers"]):
            layer = {"attn_norm": (hidden,), "attn_q": (queries, hidden), "attn_k": (keys, hidden), "attn_v": (keys, hidden)}
            layer |= {"attn_q_norm": (width,), "attn_k_norm": (width,), "attn_output": (hidden, queries), "ffn_norm": (hidden,)}
            layer |= {"ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}
            shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        file.check(shapes)
        table = file.require("token_embd.weight").shape
        if len(table) != 2 or table[1] != hidden or table[0] < IDS or meta["vocab_size"] > IDS:
            raise BundleError(f"{file.path} is of another model: its embedding table is {table}, not (ids >= {IDS}, {hidden}).")


def _copied(pointer: Any, count: int) -> NDArray[np.float32]:
    if not pointer:
        raise SynthesisError("llama.cpp gave no result for the last row.")
    return np.ctypeslib.as_array(C.cast(pointer, C.POINTER(C.c_float)), (count,)).copy()


def _give_back(held: list[_Context], pool: list[_Context]) -> None:
    pool.extend(held)
    del pool[:-_POOLED]
