"""The international tokeniser of the NIST BLEU script (mteval-v14), as NLTK 3.10 ports it.

Its first step parts every run of ASCII characters from what is not ASCII, so words with accents fall apart;
and its class of numbers holds letters and marks too. Both are part of what the ported script computes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, TypeAlias

from evaluators.text.shipped import read_shipped

_Step: TypeAlias = tuple[re.Pattern[str], str]

_ENTITIES: Final = (
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("&apos;", "'"),
    ("&quot;", '"'),
    ("&#124;", "|"),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&amp;", "&"),
)


@cache
def load_classes() -> dict[str, str]:
    """Return Number, Punctuation and Symbol, each with all of its characters."""
    rows = (line.split() for line in read_shipped("nist-classes.txt").splitlines())
    return {name: "".join(map(_expand, ranges)) for name, *ranges in rows}


def _expand(span: str) -> str:
    first, _, last = span.partition("-")
    return "".join(map(chr, range(int(first, 16), int(last or first, 16) + 1)))


@cache
def _list_steps() -> tuple[_Step, ...]:
    number, mark, symbol = (f"[{re.escape(chars)}]" for chars in load_classes().values())
    return (
        (re.compile(r"[\x00-\x7f]+"), r" \g<0> "),
        (re.compile(f"({number})({mark})"), r"\1 \2 "),
        (re.compile(f"({mark})({number})"), r" \1 \2"),
        (re.compile(symbol), r" \g<0> "),
    )


def split_international(text: str) -> list[str]:
    """Return the tokens of a text of any script, case kept.

    No step looks across white space, so a text is the sum of the pieces that white space parts.
    """
    text = text.replace("<skipped>", "").replace("\u2028", " ")
    if "&" in text:
        for entity, char in _ENTITIES:
            text = text.replace(entity, char)
    for pattern, replacement in _list_steps():
        text = pattern.sub(replacement, text)
    return text.split()
