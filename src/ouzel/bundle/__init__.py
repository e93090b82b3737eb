"""The converted model on disk: manifest, checksums, reading, writing, finding, fetching."""

from ouzel.bundle.bundle import DEPLOY, Bundle, open_bundle, read_manifest
from ouzel.bundle.manifest import Artifact, FileEntry, Manifest
from ouzel.bundle.writer import BundleWriter

__all__ = ["DEPLOY", "Artifact", "Bundle", "BundleWriter", "FileEntry", "Manifest", "open_bundle", "read_manifest"]
