# make say   a sentence into hello.wav        make test   all tests
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check install -q -c constraints.txt
TEXT   ?= Hello from the edge.
# fern or moss
SPEAKER ?= fern
DEMO   := build/demo
# how the embedded bundle is stored: docs/voice-report.md compares
EMBEDDED ?= --weights int8 --decoder int8
export OMP_NUM_THREADS ?= 1
# of `make test`: processes beside each other, 4 at most
WORKERS ?= logical

.PHONY: say test test-executorch test-clients browser page-picture lint format bench soak oracle runtime-size voice-data voice-codec voice-talker voice-export voice-report clean help

help:
	@echo 'make say [TEXT="..."] [SPEAKER=moss]   speak a sentence into hello.wav'
	@echo 'make test               set up and run every test   [WORKERS=2]'
	@echo 'make test-executorch    the tests of the runtime executorch, in a venv of its own (2 GB; minutes to lower the networks)'
	@echo 'make browser            install the Chromium of Debian, in which the tests try the page of the server (root; 0.4 GB)'
	@echo 'make page-picture       renew docs/serve-page.png'
	@echo 'make test-clients       LiveKit and Pipecat speak through the server, in a venv of their own (minutes to install)'
	@echo 'make lint | format      ruff and mypy (strict) | reformat'
	@echo 'make bench              CPU ms per frame at 0.6B shapes, beside the official package, then every runtime (minutes, 8 GB)'
	@echo 'make soak               1,000 random start/cancel points, leak and bit-equality checks   [SOAK=embedded]'
	@echo 'make oracle             regenerate tests/golden with the real vLLM-Omni and qwen-tts (two venvs, 4 GB)'
	@echo 'make voice-data         the teacher speaks the corpus (hours; resumes)   [VOICE_WORK=$(VOICE_WORK)]'
	@echo 'make voice-codec        spectrum student, codebooks, codec decoder (hours; resumes)'
	@echo 'make voice-talker       pace and pitch, talker; the decoder again on its codes (hours; resumes)'
	@echo 'make voice-export       the trained parts as a checkpoint and as the embedded bundle'
	@echo 'make voice-report       judge the embedded voice beside its teacher: docs/voice-report.md (an hour of one core)'
	@echo 'make runtime-size       install the runtime alone into a fresh venv and print its size'
	@echo 'make clean              remove what the other targets made'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# All that speaking needs: torch is a conversion and test dependency only.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.convert: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[convert]'
	@touch $@ $(VENV)/.runtime

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[convert,test,llama-cpp,mnn,openvino]'
	@touch $@ $(VENV)/.convert $(VENV)/.runtime

# Resemblyzer's weights are used, its code (with a compiler and two more libraries behind it) is not.
$(VENV)/.voice: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[convert,voice]'
	$(PIP) --no-deps Resemblyzer==0.1.4
	@touch $@ $(VENV)/.convert $(VENV)/.runtime

$(DEMO)/manifest.json: | $(VENV)/.convert
	@echo 'Making a small bundle of random weights: its shapes are real, what it speaks is noise.'
	$(BIN)/python -m ouzel.models.qwen3_tts.random_checkpoint build/demo-checkpoint --size nano --type custom_voice --seed 0
	$(BIN)/ouzel convert build/demo-checkpoint $(DEMO) --weights fp32 --force

say: $(VENV)/.runtime
	$(BIN)/ouzel say "$(TEXT)" -m embedded -v $(SPEAKER) -o hello.wav --stats

# A file's tests share what they set up, so a file stays with one worker. Each worker takes up to a gigabyte.
test: $(VENV)/.test lint
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist loadfile

browser:
	command -v chromium && command -v chromedriver || \
	{ apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends chromium chromium-driver; }

page-picture: $(VENV)/.test
	$(BIN)/python -m pytest tests/test_serve_page_looks.py
	cp build/page/speaking.png docs/serve-page.png

lint: $(VENV)/.test
	$(BIN)/ruff check src tests tools training
	$(BIN)/ruff format --check src tests tools training
	$(BIN)/mypy

# Beside torch the package brings an exporter with a third of a gigabyte of dependencies, so it does not join the other tests' venv.
.venv-executorch/.done: pyproject.toml constraints.txt
	test -x .venv-executorch/bin/python || $(PYTHON) -m venv .venv-executorch
	.venv-executorch/bin/pip --disable-pip-version-check install -q -c constraints.txt -e '.[convert,test,executorch]'
	@touch $@

test-executorch: .venv-executorch/.done
	.venv-executorch/bin/python -m pytest tests/test_executorch_*.py
	.venv-executorch/bin/python -m pytest tests/test_runtimes_matrix.py tests/test_docs_commands.py -k executorch

# Pipecat wants older versions of protobuf and others than constraints.txt has, hence pins and a venv of their own, without torch:
# the fixtures of conftest.py need it, that of the embedded voice does not.
.venv-clients/.done: pyproject.toml tools/clients/constraints.txt
	test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	.venv-clients/bin/pip --disable-pip-version-check install -q -c tools/clients/constraints.txt -e '.[serve]' \
		livekit-plugins-openai 'pipecat-ai[openai]' pytest
	@touch $@

test-clients: .venv-clients/.done
	PYTHONPATH=tests .venv-clients/bin/python -m pytest --noconftest -p embedded_case tests/test_clients_*.py

format: $(VENV)/.test
	$(BIN)/ruff check --fix src tests tools training
	$(BIN)/ruff format src tests tools training

# The official package pins other versions than ours, so it lives in a venv of its own.
.venv-official/.done: tools/oracle/requirements-official.txt
	$(PYTHON) -m venv .venv-official
	.venv-official/bin/pip --disable-pip-version-check install -q -r $<
	.venv-official/bin/pip --disable-pip-version-check install -q --no-deps qwen-tts==0.1.1
	@touch $@

bench: $(VENV)/.convert .venv-official/.done
	$(BIN)/python -m ouzel.bench --official .venv-official/bin/python
	$(BIN)/python -m ouzel.bench.runtimes

# A bundle folder or a name; the default has random weights, which loop and never end by themselves: the harder case.
SOAK ?= $(DEMO)
soak: $(VENV)/.runtime $(if $(filter $(DEMO),$(SOAK)),$(DEMO)/manifest.json)
	$(BIN)/python -m ouzel.bench.soak $(SOAK)

# Training the embedded voice: training/README.md. Everything that is made lies in VOICE_WORK and is taken up again where it ended.
VOICE_WORK ?= build/voice
STEP = $(BIN)/python -m training.voice.$(1) --work $(VOICE_WORK)

voice-data: $(VENV)/.voice
	$(call STEP,data) --part audio --minutes 90
	$(call STEP,data) --part prefix --minutes 480

voice-codec: $(VENV)/.voice
	test -e $(VOICE_WORK)/student.pt || $(call STEP,student) --minutes 8
	$(call STEP,codec)
	$(call STEP,decoder) --minutes 180

voice-talker: $(VENV)/.voice
	test -e $(VOICE_WORK)/prosody.json || $(call STEP,prosody) --minutes 8
	$(call STEP,talker) --minutes 125
	$(call STEP,own)
	$(call STEP,decoder) --minutes 200

voice-export: $(VENV)/.voice
	$(call STEP,export)
	$(BIN)/ouzel convert $(VOICE_WORK)/checkpoint src/ouzel/voices/embedded $(EMBEDDED) --force

# REPORT="--bundle DIR --compare FP32 INT4" judges other bundles; see training/voice/report.py.
voice-report: $(VENV)/.voice
	$(call STEP,report) $(REPORT)

oracle:
	tools/oracle/regenerate.sh

runtime-size:
	tools/runtime_size.sh

clean:
	rm -rf build dist hello.wav .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
