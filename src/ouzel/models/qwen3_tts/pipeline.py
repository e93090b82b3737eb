"""Qwen3-TTS topology: talker (text to codec frames), then code2wav (codec frames to samples); contract 2.1."""

from ouzel.pipeline.topology import ExecutionType, PipelineConfig, StageConfig

_PROCESSORS = "ouzel.models.qwen3_tts.processors"

# The stop id must be here and not only in the deploy file: a YAML may add stop ids but never drop the end of speech.
CODEC_EOS = 2150

PIPELINE = PipelineConfig(
    model_type="qwen3_tts",
    model_arch="Qwen3TTSTalkerForConditionalGeneration",
    default_deploy="qwen3_tts.yaml",
    hf_architectures=("Qwen3TTSForConditionalGeneration", "Qwen3TTSTalkerForConditionalGeneration"),
    stages=(
        StageConfig(
            id=0,
            model_stage="qwen3_tts",
            execution=ExecutionType.LLM_AR,
            owns_tokenizer=True,
            engine_output_type="latent",
            async_processor=f"{_PROCESSORS}:talker2code2wav_async_chunk",
            sync_producer=f"{_PROCESSORS}:talker2code2wav_full_payload",
            sampling_constraints={"detokenize": False, "stop_token_ids": [CODEC_EOS]},
        ),
        StageConfig(
            id=1,
            model_stage="code2wav",
            execution=ExecutionType.LLM_GENERATION,
            input_sources=(0,),
            final_output=True,
            final_output_type="audio",
            model_arch="Qwen3TTSCode2Wav",
            engine_output_type="audio",
            sync_consumer=f"{_PROCESSORS}:talker2code2wav_token_only",
            requires_full_payload_input=True,
            sampling_constraints={"detokenize": True},
            tts_args={"max_instructions_length": 500},
        ),
    ),
)
