"""Where each stage of a bundle should run on this machine: measured, chosen, written as a deploy file."""

from ouzel.tuning.cells import Cell, Finding, cells_of, measure_cells
from ouzel.tuning.proposal import Proposal, propose
from ouzel.tuning.trial import Trial, try_out
from ouzel.tuning.written import deploy_text

__all__ = ["Cell", "Finding", "Proposal", "Trial", "cells_of", "deploy_text", "measure_cells", "propose", "try_out"]
