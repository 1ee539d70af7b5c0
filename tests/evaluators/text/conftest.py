"""The tokenisers of NLTK, fed with the data files of the package: oracles for the rules written here."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.text.nist import load_classes
from evaluators.text.punkt import load_model

if TYPE_CHECKING:
    from collections.abc import Callable

    Split = Callable[[str], list[str]]


@pytest.fixture(scope="session")
def nltk_sentences() -> Split:
    punkt: Any = import_module("nltk.tokenize.punkt")
    model, parameters = load_model(), punkt.PunktParameters()
    parameters.abbrev_types = set(model.abbreviations)
    parameters.sent_starters = set(model.starters)
    parameters.collocations = set(model.collocations)
    parameters.ortho_context = defaultdict(int, model.contexts)
    return punkt.PunktSentenceTokenizer(parameters).tokenize


@pytest.fixture(scope="session")
def nltk_sentence_words() -> Split:
    destructive: Any = import_module("nltk.tokenize.destructive")
    return destructive.NLTKWordTokenizer().tokenize


@pytest.fixture(scope="session")
def nltk_international() -> Split:
    corpus: Any = import_module("nltk.corpus")
    lazy, corpus.perluniprops = corpus.perluniprops, _Properties()
    nist: Any = import_module("nltk.tokenize.nist")
    corpus.perluniprops = lazy
    return nist.NISTTokenizer().international_tokenize


class _Properties:
    def chars(self, category: str) -> list[str]:
        return list(load_classes()[category])
