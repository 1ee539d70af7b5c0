"""The compiled loops: texts to hashed tokens, and what two rows of tokens have in common.

Places are unsigned: a signed index would be checked for counting from the end. The constants of `tables` are
part of the machine code, which is made anew only when this file changes: touch it with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evaluators.text import tables
from evaluators.text.compiling import compiled, inlined, inner

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evaluators.text.tables import Rules

_U = np.uint64
_0, _1, _2, _3, _4, _6, _7, _12, _32 = (_U(n) for n in (0, 1, 2, 3, 4, 6, 7, 12, 32))
_ASCII, _THREE, _FOUR = (_U(n) for n in (0x80, 0xE0, 0xF0))  # first bytes of characters of several
_FIVE_BITS, _FOUR_BITS, _SIX_BITS, _CODE_BITS = (_U(n) for n in (0x1F, 0x0F, 0x3F, 0x1FFFFF))
_FACTOR = _U(0x9E3779B97F4A7C15)  # odd, without a pattern in its bits
_FACTORS = np.array([1, _FACTOR, 1, _FACTOR, 0, 0, 0, 0], _U)  # of a token, by ADD, COUNT and CLEAR
_MASKS = np.array([0, ~_0], _U)  # of a character, by ADD
_MIXER = _U(0xD6E8FEB86659FD93)  # the same
_UNTOUCHED = 0xCC  # first byte of U+0300; NFC leaves everything below alone

_SHIFT, _SYMBOL = np.uint32(tables.CLASS_SHIFT), np.uint32(tables.SYMBOL)
_MANY, _END = np.uint32(tables.MANY), np.uint32(tables.END << tables.CLASS_SHIFT)
_SAVE, _RESTORE, _BACK, _STATE = (_U(n) for n in (tables.SAVE, tables.RESTORE, tables.BACK, tables.STATE))
_RARE = _SAVE | _RESTORE | _BACK

_PAIRS, _FOURS, _EIGHTS = _U(0x5555555555555555), _U(0x3333333333333333), _U(0x0F0F0F0F0F0F0F0F)
_BYTES = _U(0x0101010101010101)
_TURN, _WORD = _U(1 << 32), 64  # more than there are tokens in a text; bits
_WORD_SLOTS = 128  # of a table for the tokens of one word of bits
_WORD_SHIFT = _U(64 - 7)


@compiled
def split_rows(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    rules: Rules,
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> np.uint64:
    """Write the tokens of UTF-8 texts to `found` and their numbers to `counts`; return their sum."""
    codes, many, steps = rules
    used = _0
    for row in range(len(counts)):
        before = used
        text = data[offsets[row] : offsets[row + 1]]
        used = _split_text(text, codes, many, steps, found, used)
        counts[row] = used - before
    return used


@inner
def _split_text(
    text: NDArray[np.uint8],
    codes: NDArray[np.uint32],
    many: NDArray[np.uint32],
    steps: NDArray[np.uint16],
    found: NDArray[np.uint64],
    used: np.uint64,
) -> np.uint64:
    at = token = saved = state = waiting = back = back_waiting = _0
    end = _U(len(text))
    entry, step = codes[0], _0
    while entry != _END or step & _BACK:
        while at < end and text[at] < _ASCII and waiting == _0:  # most of a text
            entry = codes[_U(text[at])]
            step = _U(steps[state + _U(entry >> _SHIFT)])
            if step & _RARE:
                break
            found[used] = token
            used += (step >> _1) & _1
            token, state, at = _advance(token, step, entry), step & _STATE, at + _1
        if waiting != _0:  # what is left of a character that became several
            entry = many[waiting]
            waiting = (waiting + _1) * _U(many[waiting + _1] != 0)
        elif at == end:
            entry = _END
        else:
            last = end - _1
            second, third = _U(text[min(at + _1, last)]), _U(text[min(at + _2, last)])
            code, size = _decode(_U(text[at]), second, third, _U(text[min(at + _3, last)]))
            entry, at = codes[code], at + size
            if entry >> _SHIFT == _MANY:
                waiting = _U(entry & _SYMBOL)
                continue
        step = _U(steps[state + _U(entry >> _SHIFT)])
        token = _choose(step & _RESTORE, saved, token)
        found[used] = token
        used += (step >> _1) & _U(token != _0)
        saved = _choose(step & _SAVE, token, saved)
        back, back_waiting = _choose(step & _SAVE, at, back), _choose(step & _SAVE, waiting, back_waiting)
        token, state = _advance(token, step, entry), step & _STATE
        at, waiting = _choose(step & _BACK, back, at), _choose(step & _BACK, back_waiting, waiting)
    return used


@inner
def _choose(flag: np.uint64, one: np.uint64, other: np.uint64) -> np.uint64:
    return one if flag else other


@inner
def _advance(token: np.uint64, step: np.uint64, entry: np.uint32) -> np.uint64:
    """Clear the token, and add the character, as the step says; a branch at each word would cost more."""
    return token * _FACTORS[step & _7] + (_U(entry & _SYMBOL) & _MASKS[step & _1])


@inner
def _decode(
    lead: np.uint64, second: np.uint64, third: np.uint64, fourth: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the code point that begins with these bytes, and how many it takes."""
    if lead < _ASCII:
        return lead, _1
    if lead < _THREE:
        return (lead & _FIVE_BITS) << _6 | second & _SIX_BITS, _2
    high = (lead & _FOUR_BITS) << _12 | (second & _SIX_BITS) << _6 | third & _SIX_BITS
    if lead < _FOUR:
        return high, _3
    return (high << _6 | fourth & _SIX_BITS) & _CODE_BITS, _4


@compiled
def find_rows(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    classes: NDArray[np.uint8],
    mark: int,
    found: NDArray[np.bool_],
) -> None:
    """Say which texts hold a character from U+0300 on whose class has the bit `mark`."""
    for row in range(len(found)):
        found[row] = False
        first, end = _U(offsets[row]), _U(offsets[row + 1])
        if _highest(data[first:end]) < _UNTOUCHED:
            continue
        for at in range(first, end):
            if data[at] >= _UNTOUCHED:
                last = end - _1
                second, third = _U(data[min(at + _1, last)]), _U(data[min(at + _2, last)])
                code, _ = _decode(_U(data[at]), second, third, _U(data[min(at + _3, last)]))
                found[row] |= (classes[code] & mark) != 0


@inner
def _highest(text: NDArray[np.uint8]) -> np.uint8:
    highest = np.uint8(0)
    for at in range(len(text)):
        highest = max(highest, text[at])
    return highest


@compiled
def share_rows(
    left: tuple[NDArray[np.uint64], NDArray[np.int64]],
    right: tuple[NDArray[np.uint64], NDArray[np.int64]],
    low: int,
    shared: NDArray[np.int64],
) -> None:
    """Count the n-grams two texts share, each as often as both have it, for `low` <= n < low + columns.

    `shared` comes full of zeros.
    """
    longest = _longest(left[1])
    bits = 2
    while (1 << bits) < 2 * longest:
        bits += 1
    table = np.zeros(2 << bits, np.uint64)
    mine, yours = np.empty(longest, np.uint64), np.empty(_longest(right[1]), np.uint64)
    floor = _0
    for row in range(len(shared)):
        ours = left[0][left[1][row] : left[1][row + 1]]
        theirs = right[0][right[1][row] : right[1][row + 1]]
        for n in range(1, low + shared.shape[1]):
            if min(_lengthen(mine, ours, n), _lengthen(yours, theirs, n)) <= 0:
                break
            if n >= low:
                floor += _TURN
                _put(mine, len(ours) - n + 1, table, floor, _U(64 - bits))
                shared[row, n - low] = _take(yours, len(theirs) - n + 1, table, floor, _U(64 - bits))
                if shared[row, n - low] == 0:
                    break


@inner
def _longest(starts: NDArray[np.int64]) -> int:
    longest = 0
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    return longest


@inner
def _lengthen(grams: NDArray[np.uint64], tokens: NDArray[np.uint64], n: int) -> int:
    """Make n-grams of tokens, or of (n-1)-grams and tokens; return how many."""
    for at in range(len(tokens) - n + 1):
        gram = grams[at]
        longer = ((gram ^ (gram >> _32)) * _MIXER) + tokens[at + n - 1]
        grams[at] = tokens[at] if n == 1 else longer
    return len(tokens) - n + 1


@inlined
def _find_slot(table: NDArray[np.uint64], key: np.uint64, floor: np.uint64, shift: np.uint64) -> np.uint64:
    """Return where a key stands, its value behind it, or the empty slot where it would.

    A slot whose value is below the floor is empty, so raising the floor clears the table.
    """
    slot = ((key * _MIXER) >> shift) << _1
    while table[slot] != key and table[slot + _1] >= floor:
        slot = (slot + _2) & (_U(len(table)) - _1)
    return slot


@inner
def _put(
    keys: NDArray[np.uint64], size: int, table: NDArray[np.uint64], floor: np.uint64, shift: np.uint64
) -> None:
    """Count keys up from the floor."""
    for at in range(size):
        slot = _find_slot(table, keys[at], floor, shift)
        table[slot] = keys[at]
        table[slot + _1] = max(table[slot + _1], floor) + _1


@inner
def _take(
    keys: NDArray[np.uint64], size: int, table: NDArray[np.uint64], floor: np.uint64, shift: np.uint64
) -> np.uint64:
    """Count keys down to the floor; return how many were there."""
    shared = _0
    for at in range(size):
        slot = _find_slot(table, keys[at], floor, shift)
        left = table[slot + _1]
        taken = _U(left > floor)
        table[slot + _1] = left - taken
        shared += taken
    return shared


@compiled
def align_rows(
    left: tuple[NDArray[np.uint64], NDArray[np.int64]],
    right: tuple[NDArray[np.uint64], NDArray[np.int64]],
    common: NDArray[np.int64],
) -> None:
    """Add up the length of the longest common subsequence of tokens of each row.

    Bit-parallel (Hyyro 2004): 64 tokens of one side at a time against all of the other; the carries of an
    addition wait in an array for the next 64.
    """
    table = np.empty(2 * _WORD_SLOTS, np.uint64)
    carries = np.empty(_longest(right[1]), np.uint64)
    for row in range(len(common)):
        ours = left[0][left[1][row] : left[1][row + 1]]
        theirs = right[0][right[1][row] : right[1][row + 1]]
        for at in range(len(theirs)):
            carries[at] = _0
        for first in range(0, len(ours), _WORD):
            common[row] += _align(ours[first : first + _WORD], theirs, table, carries)


@inner
def _align(
    ours: NDArray[np.uint64],
    theirs: NDArray[np.uint64],
    table: NDArray[np.uint64],
    carries: NDArray[np.uint64],
) -> np.uint64:
    for slot in range(len(table)):
        table[slot] = _0
    for at in range(len(ours)):
        slot = _find_slot(table, ours[at], _1, _WORD_SHIFT)
        table[slot] = ours[at]
        table[slot + _1] |= _1 << _U(at)
    open_places = ~_0
    for at in range(len(theirs)):
        places = table[_find_slot(table, theirs[at], _1, _WORD_SHIFT) + _1]
        half = open_places + (open_places & places)
        total = half + carries[at]
        carries[at] = _U(half < open_places) | _U(total < half)
        open_places = total | (open_places & ~places)
    return _count_bits(~open_places)


@inner
def _count_bits(word: np.uint64) -> np.uint64:
    word -= (word >> _1) & _PAIRS
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    return (((word + (word >> _4)) & _EIGHTS) * _BYTES) >> _U(56)
