"""The C functions that ouzel calls, with their argument and result types."""

from __future__ import annotations

import ctypes as C
from typing import Any

from ouzel.runtimes.llama_cpp.structs import Batch, ContextParams, InitParams, ModelParams

_P, _I, _L, _F, _B, _Z = C.c_void_p, C.c_int, C.c_int64, C.c_float, C.c_bool, C.c_size_t

# name -> (result, arguments)
_LLAMA: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "llama_backend_init": (None, ()),
    "llama_log_set": (None, (_P, _P)),
    "llama_model_default_params": (ModelParams, ()),
    "llama_context_default_params": (ContextParams, ()),
    "llama_model_load_from_file": (_P, (C.c_char_p, ModelParams)),
    "llama_model_free": (None, (_P,)),
    "llama_model_get_vocab": (_P, (_P,)),
    "llama_model_n_embd": (_I, (_P,)),
    "llama_vocab_n_tokens": (_I, (_P,)),
    "llama_init_from_model": (_P, (_P, ContextParams)),
    "llama_free": (None, (_P,)),
    "llama_n_ctx": (C.c_uint32, (_P,)),
    "llama_set_embeddings": (None, (_P, _B)),
    "llama_set_abort_callback": (None, (_P, _P, _P)),
    "llama_get_memory": (_P, (_P,)),
    "llama_memory_clear": (None, (_P, _B)),
    "llama_memory_seq_rm": (_B, (_P, C.c_int32, C.c_int32, C.c_int32)),
    "llama_state_seq_get_size": (_Z, (_P, C.c_int32)),
    "llama_state_seq_get_data": (_Z, (_P, _P, _Z, C.c_int32)),
    "llama_state_seq_set_data": (_Z, (_P, _P, _Z, C.c_int32)),
    "llama_decode": (C.c_int32, (_P, Batch)),
    "llama_get_logits_ith": (_P, (_P, C.c_int32)),
    "llama_get_embeddings_ith": (_P, (_P, C.c_int32)),
}
_GGML: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ggml_version": (C.c_char_p, ()),
    "ggml_init": (_P, (InitParams,)),
    "ggml_free": (None, (_P,)),
    "ggml_tensor_overhead": (_Z, ()),
    "ggml_graph_overhead_custom": (_Z, (_Z, _B)),
    "ggml_new_graph_custom": (_P, (_P, _Z, _B)),
    "ggml_build_forward_expand": (None, (_P, _P)),
    "ggml_new_tensor": (_P, (_P, _I, _I, C.POINTER(_L))),
    "ggml_backend_cpu_init": (_P, ()),
    "ggml_backend_free": (None, (_P,)),
    "ggml_backend_cpu_set_n_threads": (None, (_P, _I)),
    "ggml_backend_cpu_set_abort_callback": (None, (_P, _P, _P)),
    "ggml_backend_cpu_reg": (_P, ()),
    "ggml_backend_reg_dev_get": (_P, (_P, _Z)),
    "ggml_backend_reg_get_proc_address": (_P, (_P, C.c_char_p)),
    "ggml_backend_buft_name": (C.c_char_p, (_P,)),
    "ggml_backend_dev_supports_op": (_B, (_P, _P)),
    "ggml_backend_cpu_buffer_from_ptr": (_P, (_P, _Z)),
    "ggml_backend_cpu_buffer_type": (_P, ()),
    "ggml_backend_alloc_ctx_tensors_from_buft": (_P, (_P, _P)),
    "ggml_backend_tensor_alloc": (_I, (_P, _P, _P)),
    "ggml_backend_tensor_set": (None, (_P, _P, _Z, _Z)),
    "ggml_backend_buffer_free": (None, (_P,)),
    "ggml_backend_graph_compute": (_I, (_P, _P)),
    "ggml_gallocr_new": (_P, (_P,)),
    "ggml_gallocr_alloc_graph": (_B, (_P, _P)),
    "ggml_gallocr_free": (None, (_P,)),
    # operators: the context comes first
    "ggml_add": (_P, (_P, _P, _P)),
    "ggml_mul": (_P, (_P, _P, _P)),
    "ggml_mul_mat": (_P, (_P, _P, _P)),
    "ggml_scale": (_P, (_P, _P, _F)),
    "ggml_sub": (_P, (_P, _P, _P)),
    "ggml_sqr": (_P, (_P, _P)),
    "ggml_sqrt": (_P, (_P, _P)),
    "ggml_clamp": (_P, (_P, _P, _F, _F)),
    "ggml_relu": (_P, (_P, _P)),
    "ggml_tanh": (_P, (_P, _P)),
    "ggml_sigmoid": (_P, (_P, _P)),
    "ggml_mean": (_P, (_P, _P)),
    "ggml_sum_rows": (_P, (_P, _P)),
    "ggml_concat": (_P, (_P, _P, _P, _I)),
    "ggml_get_rows": (_P, (_P, _P, _P)),
    "ggml_sin": (_P, (_P, _P)),
    "ggml_gelu_erf": (_P, (_P, _P)),
    "ggml_norm": (_P, (_P, _P, _F)),
    "ggml_rms_norm": (_P, (_P, _P, _F)),
    "ggml_swiglu_split": (_P, (_P, _P, _P)),
    "ggml_rope_ext": (_P, (_P, _P, _P, _P, _I, _I, _I, _F, _F, _F, _F, _F, _F)),
    "ggml_soft_max_ext": (_P, (_P, _P, _P, _F, _F)),
    "ggml_cpy": (_P, (_P, _P, _P)),
    "ggml_cont": (_P, (_P, _P)),
    "ggml_transpose": (_P, (_P, _P)),
    "ggml_permute": (_P, (_P, _P, _I, _I, _I, _I)),
    "ggml_reshape_2d": (_P, (_P, _P, _L, _L)),
    "ggml_reshape_3d": (_P, (_P, _P, _L, _L, _L)),
    "ggml_view_1d": (_P, (_P, _P, _L, _Z)),
    "ggml_view_2d": (_P, (_P, _P, _L, _L, _Z, _Z)),
    "ggml_view_3d": (_P, (_P, _P, _L, _L, _L, _Z, _Z, _Z)),
}
_ALL = _LLAMA | _GGML
NEEDED = tuple(_ALL)


def declare(library: Any) -> None:
    """Give each function its types; `library` finds them by name."""
    for name, (result, arguments) in _ALL.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
