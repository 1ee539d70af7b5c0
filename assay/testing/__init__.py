"""What tests of an evaluation need: a server that answers as a model would, and a function that does.

Example:
    >>> from assay.testing import ModelServer, scripted
    >>> with ModelServer([{"reply": "Paris"}]) as server:
    ...     url = server.base_url  # for `assay run … --base-url`, `assay.run(…, base_url=…)` or any client
    >>> scripted({"Where is the Louvre?": "Paris"})("Where is the Louvre?")
    'Paris'
"""

from assay.testing.functions import scripted
from assay.testing.server import ModelServer

__all__ = ["ModelServer", "scripted"]
