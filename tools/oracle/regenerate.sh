#!/usr/bin/env bash
# Regenerate tests/golden/greedy, tests/golden/reference and conversations.json with two oracles, each in a venv of its own (about 4 GB and 25 CPU minutes in all):
# the official qwen-tts 0.1.1 and the real vLLM-Omni 0.30.0 on its CPU platform plug-in.
#
#   tools/oracle/regenerate.sh [WORK]
#   ORACLE_TOOLS   folder with the plug-in and its pins (default ../shared/tools/oracle beside the checkout)
#   QWEN_VENV, OMNI_VENV   existing venvs to use instead of making them
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(realpath -m "${1:-$root/build/oracle}")"
tools="${ORACLE_TOOLS:-$root/../shared/tools/oracle}"
qwen="${QWEN_VENV:-$work/qwen}"
omni="${OMNI_VENV:-$work/omni}"
mkdir -p "$work"
if [ ! -x "$qwen/bin/python" ]; then
    python3.11 -m venv "$qwen"
    "$qwen/bin/pip" install -q -r "$root/tools/oracle/requirements-official.txt"
    "$qwen/bin/pip" install -q --no-deps qwen-tts==0.1.1
fi
[ -x "$omni/bin/python" ] || "$tools/install.sh" "$omni"

rm -rf "$work/plain" "$work/plain-encoders" "$work/with-encoder" "$work/golden"
for task in custom_voice base voice_design; do
    "$root/.venv/bin/python" -m ouzel.models.qwen3_tts.random_checkpoint "$work/plain/$task" --size tiny --type "$task" --seed 0 --dtype f32
done
"$root/.venv/bin/python" -m ouzel.models.qwen3_tts.random_checkpoint "$work/plain-encoders" --size tiny --type base --seed 0 --dtype f32 --encoders
cd "$root/tools/oracle"
OMP_NUM_THREADS=1 "$qwen/bin/python" reference.py "$work/plain-encoders" "$root/tests/golden/reference"
OMP_NUM_THREADS=1 "$qwen/bin/python" add_encoder.py "$work/plain" "$work/with-encoder"
OMP_NUM_THREADS=1 "$qwen/bin/python" official.py "$work/plain" "$work/golden"
(
    # shellcheck disable=SC1091
    source "$tools/env.sh"
    "$omni/bin/python" omni.py "$work/with-encoder" "$tools/qwen3_tts_cpu.yaml" "$work/golden"
)
mkdir -p "$root/tests/golden/greedy"
cp "$work"/golden/*.npz "$root/tests/golden/greedy/"
ls -l "$root/tests/golden/greedy"

# The real server, for the client that tests/test_serve_conversations.py lets talk to ours.
(
    # shellcheck disable=SC1091
    source "$tools/env.sh"
    exec "$omni/bin/python" "$omni/bin/vllm-omni" serve "$work/with-encoder/custom_voice" --omni --served-model-name tiny \
        --deploy-config "$tools/qwen3_tts_cpu.yaml" --host 127.0.0.1 --port 8091 --stage-init-timeout 900 --init-timeout 1200
) >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server' EXIT
until curl -sf http://127.0.0.1:8091/health >/dev/null; do
    kill -0 $server || { tail "$work/server.log"; exit 1; }
    sleep 2
done
rm -f "$work/conversations.json"
"$root/.venv/bin/python" "$root/tools/oracle/conversations.py" http://127.0.0.1:8091 "$work/conversations.json"
cp "$work/conversations.json" "$root/tests/golden/"
