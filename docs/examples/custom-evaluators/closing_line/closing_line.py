"""An evaluator in the folder form: the first class of a file that is named like its folder."""

from __future__ import annotations


class ClosingLine:
    """Scores 1 when the answer ends with one of `options["lines"]`."""

    def __init__(self, *, threshold: float, options: dict[str, list[str]]) -> None:
        """Take what the dataset says under `threshold` and `options`."""
        self.threshold = threshold
        self.lines = options.get("lines", ["Best regards"])

    def __call__(self, *, response: str, **_: str) -> dict[str, object]:
        """Return a score, a reason, or `{"error": text}`; result and threshold belong to the run."""
        ends = any(response.rstrip().endswith(line) for line in self.lines)
        return {"score": 1 if ends else 0, "reason": "" if ends else f"does not end with {self.lines}"}
