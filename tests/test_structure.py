"""The shape of the code: layers, public surface of files, licences of imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ouzel"

# docs/architecture.md, from the top down; a module may import its own layer and lower ones.
LAYERS = (
    ("cli", "bench", "__main__"),
    ("serve",),
    ("diagnosis", "tuning"),
    ("api", "conversion", "__init__"),
    ("engine",),
    ("models", "runtimes"),
    ("pipeline", "schedule", "autoregressive"),
    ("bundle",),
    ("adapters", "request", "sampling", "plugins"),
    ("audio", "english", "text"),
    ("errors", "unfinished"),
)
LEVEL = {name: len(LAYERS) - i for i, names in enumerate(LAYERS) for name in names}


def noun(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_every_module_has_a_layer():
    assert {noun(path) for path in sources()} == set(LEVEL)


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path):
    mine = noun(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "ouzel" or len(parts) < 2:
            continue
        other = parts[1] if parts[1] in LEVEL else "__init__"
        assert LEVEL[other] <= LEVEL[mine], f"{path} ({mine}) imports {name}"
        if mine in ("models", "runtimes") and other in ("models", "runtimes") and other != mine:
            assert parts[2:3] == ["base"], f"{path}: a family knows no runtime and a runtime no family, but it imports {name}"


def test_a_runtime_names_no_family():
    for path in sorted((PACKAGE / "runtimes").rglob("*.py")):
        assert "qwen3_tts" not in path.read_text(encoding="utf-8"), f"{path} names a model family"


@pytest.mark.parametrize("path", [*sources(), *sorted((ROOT / "tests").glob("*.py"))], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_of_one_noun(path: Path):
    """400 lines is where a file has become a crowded room."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_nothing_heavy_is_imported_with_the_package():
    code = "import ouzel, ouzel.cli.main, sys; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"torch", "onnx", "onnxruntime", "huggingface_hub", "fastapi", "sounddevice"})


def test_no_assert_guards_input():
    for path in sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Assert)], f"{path}: python -O removes asserts"
