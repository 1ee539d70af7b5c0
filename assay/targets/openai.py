"""Target `openai`: a model behind any OpenAI-compatible URL answers."""

from __future__ import annotations

from assay.targets.contract import TargetKind
from assay.targets.model import build_model

KIND = TargetKind("openai", "asks a model behind an OpenAI-compatible URL", build_model)
