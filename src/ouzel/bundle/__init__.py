"""The converted model on disk: manifest, checksums, reading, writing, finding, fetching."""

from ouzel.bundle.bundle import Bundle, open_bundle, read_manifest
from ouzel.bundle.manifest import Artifact, FileEntry, Manifest
from ouzel.bundle.writer import BundleWriter

__all__ = ["Artifact", "Bundle", "BundleWriter", "FileEntry", "Manifest", "open_bundle", "read_manifest"]
