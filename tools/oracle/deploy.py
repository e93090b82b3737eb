"""Write what the real vLLM-Omni makes of deploy files as JSON; run with the Python of a venv that has vLLM-Omni 0.30.0.

    PYTHON tools/oracle/deploy.py OUT_FOLDER FILE.yaml ...

One OUT_FOLDER/<stem>.json a file: per platform the flat stage fields after all merges, sampling with the pipeline's constraints,
connectors, and whether the server's own resolution accepts the result. tests/golden/deploy/*.json were made by it.
"""

import copy
import json
import sys
from dataclasses import asdict
from pathlib import Path

from vllm_omni.config.omni_config import VllmOmniConfig
from vllm_omni.config.stage_config import (
    _apply_platform_overrides,
    load_deploy_config,
    merge_sampling_constraints,
    resolve_stage_async_chunk,
)
from vllm_omni.model_executor.models.qwen3_tts.pipeline import QWEN3_TTS_PIPELINE

PLATFORMS = ("cpu", "cuda", "npu", "rocm", "xpu", "musa")


def merged(path: Path, platform: str) -> dict:
    deploy = load_deploy_config(path)
    try:
        deploy = _apply_platform_overrides(deploy, platform)
    except (NotImplementedError, ValueError) as error:
        return {"error": type(error).__name__}
    blocks = {stage.stage_id: stage for stage in deploy.stages}
    stages = {}
    for topology in QWEN3_TTS_PIPELINE.stages:
        block = blocks.get(topology.stage_id)
        fields = {} if block is None else asdict(block)
        extras = fields.pop("engine_extras", {})
        flat = {k: v for k, v in {**fields, **extras}.items() if v is not None and k not in ("async_chunk", "stage_id")}
        sampling = merge_sampling_constraints(flat.pop("default_sampling_params", None), topology.sampling_constraints)
        mode = resolve_stage_async_chunk(deploy, block)
        stages[str(topology.stage_id)] = {"async_chunk": mode, "sampling": sampling, "fields": flat}
    return {
        "model_runner": deploy.model_runner,
        "async_chunk": deploy.async_chunk,
        "connectors": deploy.connectors,
        "stages": stages,
    }


def accepted(path: Path) -> bool | str:
    try:
        VllmOmniConfig.from_pipeline_config(
            QWEN3_TTS_PIPELINE, user_deploy_config=copy.deepcopy(load_deploy_config(path)), cli_overrides={"model": "model"}
        )
    except (ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return True


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:]:
        path = Path(name)
        result = {"accepted": accepted(path), "platforms": {p: merged(path, p) for p in PLATFORMS}}
        (out / f"{path.stem}.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
