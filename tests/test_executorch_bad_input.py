"""What the runtime executorch refuses: one sentence each, and no native assertion that would end the process."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

import executorch_case
from ouzel.bundle import open_bundle
from ouzel.errors import BundleError, MissingExtraError, OuzelError, UsageError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.executorch import RUNTIME, library
from ouzel.runtimes.executorch.backends import BACKENDS, chosen_backend, partitioner
from ouzel.runtimes.executorch.export import Traced, lower
from ouzel.runtimes.executorch.program import Method, Program

PTE = "executorch/talker.pte"


def load(bundle, options=executorch_case.ONE, **meta):
    artifact = bundle.artifact("talker")
    return RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, **meta}), options)


@pytest.fixture
def copied(tmp_path):
    """The talker's bundle, to be spoilt."""
    shutil.copytree(executorch_case.bundle("talker").root, tmp_path / "bundle")
    return open_bundle(tmp_path / "bundle", verify=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not an ExecuTorch program"),
        (bytes(range(256)) * 9, "is not an ExecuTorch program"),
        (b"\0\0\0\0ET12" + b"\xff" * 5000, "cannot load"),
    ],
)
def test_a_file_that_is_no_program_is_refused(copied, content, reason):
    copied.path(PTE).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{reason}.*[Cc]onvert"):
        load(copied)


def test_a_truncated_program_is_refused(copied):
    whole = copied.path(PTE).read_bytes()
    copied.path(PTE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BundleError, match=r"cannot load .*size is too small"):
        load(copied)
    with pytest.raises(BundleError, match=r"talker\.pte has \d+ bytes instead of"):
        open_bundle(copied.root)


def test_a_program_that_is_absent_is_refused(copied):
    copied.path(PTE).unlink()
    with pytest.raises(BundleError, match="No such file"):
        load(copied)


def test_a_changed_byte_is_found_when_the_bundle_is_opened(copied):
    content = bytearray(copied.path(PTE).read_bytes())
    content[-1] ^= 1
    copied.path(PTE).write_bytes(content)
    with pytest.raises(BundleError, match=r"talker\.pte has been altered"):
        open_bundle(copied.root)


def test_a_program_of_another_stage_names_what_it_lacks(copied):
    shutil.copy(executorch_case.bundle("predictor").path("executorch/predictor.pte"), copied.path(PTE))
    with pytest.raises(BundleError, match=r"lacks forward \(it has body, head_1, .*another stage"):
        load(copied)


def test_a_program_of_another_model_names_the_tensor(copied):
    with pytest.raises(
        BundleError, match=r"rows of forward is \(1, 32, 64\), but the manifest says \(1, 32, 96\).*another model"
    ):
        load(copied, hidden_size=96)
    with pytest.raises(BundleError, match=r"key\.0 of forward is \(1, 700, 2, 16\), but the manifest says \(1, 4096, 2, 16\)"):
        load(copied, max_positions=4096)
    with pytest.raises(BundleError, match=r"key\.2 of forward is absent"):
        load(copied, layers=3)
    with pytest.raises(BundleError, match="takes 6 tensors and gives 2, but the manifest says 4 and 2"):
        load(copied, layers=1)
    with pytest.raises(BundleError, match="'layers' in the manifest is 0"):
        load(copied, layers=0)


def test_a_delegate_that_is_not_here_is_named(copied):
    with pytest.raises(
        BundleError, match=r"lowered for VulkanBackend, which ExecuTorch 1\.5\.\d+ here does not have \(it has .*Xnnpack"
    ):
        load(copied, backend="VulkanBackend")


def test_unknown_devices_precisions_and_threads_are_refused(copied):
    with pytest.raises(UsageError, match=r"'cuda'.*Valid choices: cpu"):
        load(copied, StageOptions(device="cuda"))
    with pytest.raises(UsageError, match=r"'int4'.*Valid choices: auto, fp32"):
        load(copied, StageOptions(precision="int4"))
    for threads in (-1, 100_000):
        with pytest.raises(UsageError, match="number of threads must be"):
            load(copied, StageOptions(threads=threads))


def test_stages_of_one_process_have_one_number_of_threads(copied):
    first = load(copied)
    assert load(copied, StageOptions(threads=0)).hidden_size == first.hidden_size
    with pytest.raises(UsageError, match="one pool of threads for all stages of a process, which has 1 now"):
        load(copied, StageOptions(threads=2))


def test_a_package_that_is_absent_or_of_another_series_names_the_pip_command(monkeypatch):
    library.executorch.cache_clear()

    def absent(name):
        raise library.metadata.PackageNotFoundError(name)

    for found, reason in (
        (absent, "is not installed"),
        (lambda name: "1.7.0", r"ExecuTorch 1\.7\.0 is installed, but ouzel runs 1\.5\.x"),
    ):
        monkeypatch.setattr(library.metadata, "version", found)
        with pytest.raises(MissingExtraError, match=rf"{reason}.*pip install 'ouzel\[executorch\]'"):
            library.executorch()
        status = RUNTIME.status()
        assert not status.available
        assert "pip install 'ouzel[executorch]'" in status.detail
    monkeypatch.undo()
    assert RUNTIME.status().available


def test_backends_are_named_and_say_what_cannot_be_checked(monkeypatch):
    assert chosen_backend().name == "xnnpack"
    monkeypatch.setenv("OUZEL_EXECUTORCH_BACKEND", "vulkan")
    assert chosen_backend().delegate == "VulkanBackend"
    monkeypatch.setenv("OUZEL_EXECUTORCH_BACKEND", "xnpack")
    with pytest.raises(UsageError, match=r"'xnpack'. Did you mean 'xnnpack'\? Valid choices: xnnpack, vulkan, coreml, qnn"):
        chosen_backend()
    assert [name for name, each in BACKENDS.items() if not each.unchecked] == ["xnnpack"]


def test_tools_of_a_backend_that_are_absent_are_an_error_with_a_way_out(monkeypatch):
    def absent():
        raise ImportError("no SDK here")

    with pytest.raises(MissingExtraError, match=r"cannot lower for vulkan on this machine \(no SDK here\).*xnnpack needs none"):
        partitioner(replace(BACKENDS["vulkan"], partitioner=absent))
    monkeypatch.delenv("QNN_SDK_ROOT", raising=False)
    with pytest.raises(MissingExtraError, match=r"cannot lower for qnn on this machine \(QNN_SDK_ROOT does not name"):
        partitioner(BACKENDS["qnn"])


def test_tools_that_fail_are_a_sentence_where_nobody_checked_them(tmp_path):
    import torch

    broken = replace(BACKENDS["coreml"], partitioner=object)
    with pytest.raises(OuzelError, match=r"tools of backend coreml failed over head \(.*xnnpack is the one known to work"):
        lower({"forward": Traced(torch.nn.Linear(4, 4), (torch.zeros(1, 4),))}, tmp_path / "head.pte", broken, lambda part: None)
    assert list(tmp_path.iterdir()) == []


def test_a_method_that_fails_says_which(copied):
    from ouzel.errors import SynthesisError

    program = Program(copied.path(PTE), {"forward": Method(dict(_inputs(copied)), 2)}, backend="XnnpackBackend", threads=1)
    with pytest.raises(SynthesisError, match=r"failed in forward of talker\.pte"):
        program.run("forward", [])


def _inputs(bundle):
    from ouzel.runtimes.executorch.caches import cache_inputs

    meta = bundle.artifact("talker").meta
    yield "rows", (1, meta["max_rows"], meta["hidden_size"])
    yield "positions", (meta["max_rows"],)
    yield from cache_inputs(meta, meta["max_positions"]).items()
