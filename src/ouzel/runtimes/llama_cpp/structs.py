"""llama.cpp's structures that pass by value, and the bytes its default functions must give for us to trust their layout.

The structures grow and shift between builds. Each is declared here with room behind it, so that a function that returns or reads
more than we know of stays inside our memory, and a build is used only when the defaults it returns are, byte for byte, those of
a layout listed here. Only fields of that layout are ever written.
"""

from __future__ import annotations

import ctypes as C

_ROOM = 256  # bytes behind each structure
_AUTO = -1
_F16 = 1  # of enum ggml_type


class ModelParams(C.Structure):
    """struct llama_model_params."""

    _fields_ = [
        ("devices", C.c_void_p),
        ("tensor_buft_overrides", C.c_void_p),
        ("n_gpu_layers", C.c_int32),
        ("split_mode", C.c_int32),
        ("load_mode", C.c_int32),
        ("lazy_mode", C.c_int32),
        ("main_gpu", C.c_int32),
        ("_gap", C.c_uint32),
        ("tensor_split", C.c_void_p),
        ("progress_callback", C.c_void_p),
        ("progress_callback_user_data", C.c_void_p),
        ("kv_overrides", C.c_void_p),
        ("vocab_only", C.c_bool),
        ("check_tensors", C.c_bool),
        ("use_extra_bufts", C.c_bool),
        ("no_host", C.c_bool),
        ("no_alloc", C.c_bool),
        ("load_mtp", C.c_bool),
        ("_room", C.c_uint8 * _ROOM),
    ]


class ContextParams(C.Structure):
    """struct llama_context_params as far as it is the same in all layouts; what follows is only compared."""

    _fields_ = [
        ("n_ctx", C.c_uint32),
        ("n_batch", C.c_uint32),
        ("n_ubatch", C.c_uint32),
        ("n_seq_max", C.c_uint32),
        ("n_rs_seq", C.c_uint32),
        ("n_outputs_max", C.c_uint32),
        ("n_outputs_max_per_seq", C.c_uint32),
        ("n_threads", C.c_int32),
        ("n_threads_batch", C.c_int32),
        ("ctx_type", C.c_int32),
        ("rope_scaling_type", C.c_int32),
        ("pooling_type", C.c_int32),
        ("attention_type", C.c_int32),
        ("flash_attn_type", C.c_int32),
        ("rope_freq_base", C.c_float),
        ("rope_freq_scale", C.c_float),
        ("yarn_ext_factor", C.c_float),
        ("yarn_attn_factor", C.c_float),
        ("yarn_beta_fast", C.c_float),
        ("yarn_beta_slow", C.c_float),
        ("yarn_orig_ctx", C.c_uint32),
        ("defrag_thold", C.c_float),
        ("cb_eval", C.c_void_p),
        ("cb_eval_user_data", C.c_void_p),
        ("type_k", C.c_int32),
        ("type_v", C.c_int32),
        ("rest", C.c_uint8 * _ROOM),
    ]


class Batch(C.Structure):
    """struct llama_batch: rows instead of tokens, positions a section after another."""

    _fields_ = [
        ("n_tokens", C.c_int32),
        ("token", C.c_void_p),
        ("embd", C.c_void_p),
        ("pos", C.c_void_p),
        ("n_seq_id", C.c_void_p),
        ("seq_id", C.c_void_p),
        ("logits", C.c_void_p),
    ]


class InitParams(C.Structure):
    """struct ggml_init_params."""

    _fields_ = [("mem_size", C.c_size_t), ("mem_buffer", C.c_void_p), ("no_alloc", C.c_bool)]


# What follows the key/value types: [moe_cache_size], abort callback and its data, six booleans and two bytes of padding.
_POINTERS_AND_FLAGS = bytes(16) + bytes([0, 1, 1, 1, 1, 0])
_TAILS = {"with moe_cache_size": bytes(8) + _POINTERS_AND_FLAGS, "without moe_cache_size": _POINTERS_AND_FLAGS}


def layout(model: ModelParams, context: ContextParams) -> str | None:
    """The name of the known layout that these defaults are of, or None."""
    fixed = ContextParams(
        n_ctx=512,
        n_batch=2048,
        n_ubatch=512,
        n_seq_max=1,
        n_outputs_max_per_seq=1,
        n_threads=4,
        n_threads_batch=4,
        rope_scaling_type=_AUTO,
        pooling_type=_AUTO,
        attention_type=_AUTO,
        flash_attn_type=_AUTO,
        yarn_ext_factor=-1,
        yarn_attn_factor=-1,
        yarn_beta_fast=-1,
        yarn_beta_slow=-1,
        defrag_thold=-1,
        type_k=_F16,
        type_v=_F16,
    )
    wanted = ModelParams(n_gpu_layers=-1, split_mode=1, load_mode=_AUTO, lazy_mode=1, use_extra_bufts=True)
    wanted._gap = model._gap  # padding: whatever lay there
    front = ContextParams.rest.offset
    if bytes(model)[: ModelParams._room.offset] != bytes(wanted)[: ModelParams._room.offset]:
        return None
    if bytes(context)[:front] != bytes(fixed)[:front]:
        return None
    rest = bytes(context.rest)
    return next((name for name, tail in _TAILS.items() if rest.startswith(tail)), None)
