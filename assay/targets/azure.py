"""Target `azure`: a deployment of an Azure OpenAI resource answers."""

from __future__ import annotations

from assay.targets.contract import TargetKind
from assay.targets.model import build_model

KIND = TargetKind("azure", "asks a deployment of an Azure OpenAI resource", build_model)
