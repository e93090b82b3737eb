"""A checkpoint made into a bundle: from a local folder, or fetched from the hub first."""

from ouzel.conversion.make import convert
from ouzel.conversion.pulling import pull
from ouzel.conversion.targets import Target, targets

__all__ = ["Target", "convert", "pull", "targets"]
