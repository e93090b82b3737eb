"""The speaker encoder's sizes and weights, from a GGUF file of ours or of llama.cpp's converter, as `speaker_graph` computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.meta import sizes

Floats = NDArray[np.float32]
Shapes = dict[str, tuple[int, ...]]

_SIZES = ("sample_rate", "hidden_size", "least_samples", "bands", "channels", "groups", "squeezed", "attention")
_MOST_BLOCKS, _MOST_GROUPS, _MOST_REACH = 16, 64, 64  # published: 3, 8, and 4 frames to each side


@dataclass(frozen=True, slots=True)
class SpeakerMeta:
    """An artifact's meta, checked. size: the whole numbers. convolutions: (taps, dilation): first, each block's, last."""

    size: dict[str, int]
    convolutions: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, artifact: Any) -> SpeakerMeta:
        """Raises BundleError for what is missing, of the wrong kind or contradicts itself."""
        size = sizes("speaker encoder", artifact.meta, _SIZES)
        try:
            convolutions = tuple((int(taps), int(dilation)) for taps, dilation in artifact.meta["convolutions"])
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"The speaker encoder's meta in the manifest is incomplete ({error!r}); convert the bundle again."
            ) from error
        fine = 3 <= len(convolutions) <= _MOST_BLOCKS + 2 and size["groups"] <= _MOST_GROUPS
        fine &= size["channels"] % size["groups"] == 0
        fine &= all(
            taps > 0 and taps % 2 and dilation > 0 and taps // 2 * dilation <= _MOST_REACH for taps, dilation in convolutions
        )
        if not fine:
            raise BundleError("The speaker encoder's dimensions in the manifest contradict each other; convert the bundle again.")
        return cls(size, convolutions)

    @property
    def blocks(self) -> int:
        """How many there are between the first convolution and the last."""
        return len(self.convolutions) - 2

    @property
    def gathered(self) -> int:
        """Channels of all blocks together."""
        return self.blocks * self.size["channels"]

    @property
    def margin(self) -> int:
        """Frames that the widest convolution looks to each side."""
        return max(taps // 2 * dilation for taps, dilation in self.convolutions)

    def shapes(self) -> Shapes:
        """Name -> shape, of all that is read."""
        s, gathered = self.size, self.gathered
        wide, part = s["channels"], s["channels"] // s["groups"]
        (first, *inner, last) = (taps for taps, _ in self.convolutions)
        shapes = _pair("a.conv1d.0", wide, s["bands"], first)
        for i, taps in enumerate(inner, start=1):
            at = f"a.blk.{i}."
            shapes |= _pair(f"{at}conv_pw1", wide, wide, 1) | _pair(f"{at}conv_pw2", wide, wide, 1)
            shapes |= _pair(f"{at}se_conv1", s["squeezed"], wide, 1) | _pair(f"{at}se_conv2", wide, s["squeezed"], 1)
            for j in range(s["groups"] - 1):
                shapes |= _pair(f"{at}res2.{j}", part, part, taps)
        shapes |= _pair("a.conv_out", gathered, gathered, last) | _pair("a.asp_tdnn", s["attention"], 3 * gathered, 1)
        shapes["a.asp_attn.weight"] = (gathered, s["attention"], 1)
        return shapes | _pair("mm.a.fc", s["hidden_size"], 2 * gathered, 1)


def read_weights(file: GgufFile, meta: SpeakerMeta, place: Callable[[str, Floats], None]) -> None:
    """Check the file, then call place(name, array) for each weight of the graph. BundleError for a file of another model."""
    shapes = meta.shapes()
    file.check(shapes)
    for name, shape in shapes.items():
        values = file.floats(name).reshape(shape)
        if name == "a.asp_tdnn.weight":
            for part, columns in zip(("frame", "mean", "deviation"), np.split(values[:, :, 0], 3, axis=1), strict=True):
                place(f"a.asp_tdnn.{part}", np.ascontiguousarray(columns))
        elif len(shape) == 3:
            place(name, np.ascontiguousarray(values.transpose(0, 2, 1).reshape(shape[0], -1)))
        else:
            place(name, values)


def _pair(name: str, *shape: int) -> Shapes:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
