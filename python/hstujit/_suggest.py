"""What a misspelt name most likely stands for: the rule of compiler/support/suggest.cpp.

tests/support/suggestions.json is what both are held to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_LEAST_BEGUN = 4  # letters of a name; of fewer many names go on
_LONGEST_OF_WORDS = 200  # letters of a name whose words are compared; a longer one is no name


def closest(wrong: str, names: Iterable[str]) -> str:
    """The one that is most like it, the first of several; "" where none is near enough to be meant."""
    names = list(names)
    folded = _folded(wrong)
    return (
        next((name for name in names if _folded(name) == folded), "")
        or _begun(folded, names)
        or _with_few_mistakes(folded, names)
        or _with_its_words(folded, names)
    )


def _folded(name: str) -> str:
    """Upper and lower case are alike, and so are both dashes."""
    return name.lower().replace("-", "_")


def _begun(wrong: str, names: Sequence[str]) -> str:
    """The shortest of those that go on with more."""
    begun = [name for name in names if len(name) > len(wrong) >= _LEAST_BEGUN and _folded(name).startswith(wrong)]
    return min(begun, key=len, default="")


def _with_few_mistakes(wrong: str, names: Sequence[str]) -> str:
    best, bound = "", _mistakes(len(wrong)) + 1
    for name in names:
        if abs(len(name) - len(wrong)) >= bound:  # the distance is no less
            continue
        distance = _edit_distance(wrong, _folded(name))
        if distance < bound and distance < len(name):
            best, bound = name, distance
    return best


def _mistakes(letters: int) -> int:
    """That a name of so many letters may have: of a short one, more make another word."""
    short = 4
    return 1 if letters <= short else max(2, letters // 3)


def _edit_distance(a: str, b: str) -> int:
    """Number of insertions, removals, replacements and swaps of neighbours that make one into the other."""
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a):
        following = [i + 1]
        for j, y in enumerate(b):
            least = min(row[j + 1] + 1, following[j] + 1, row[j] + (x != y))
            if i and j and x == b[j - 1] and a[i - 1] == y:
                least = min(least, before[j - 1] + 1)
            following.append(least)
        before, row = row, following
    return row[-1]


def _with_its_words(wrong: str, names: Sequence[str]) -> str:
    """The first with the same words, some of them written out; else one that has all of these and the fewest more."""
    if len(wrong) > _LONGEST_OF_WORDS:
        return ""
    words = wrong.split("_")
    for name in names:
        if _are_the_same(words, _folded(name).split("_")):
            return name
    if len(wrong) < _LEAST_BEGUN:
        return ""
    more = [name for name in names if _stand_in(words, _folded(name).split("_"))]
    return min(more, key=lambda name: len(_folded(name).split("_")), default="")


def _are_the_same(a: Sequence[str], b: Sequence[str]) -> bool:
    """In order; of four and more, one may be another word."""
    least, many = 2, 4
    if len(a) != len(b) or len(a) < least:
        return False
    others = sum(x != y and not _is_shortened(x, y) for x, y in zip(a, b))
    return others == 0 or (others == 1 and len(a) >= many)


def _is_shortened(a: str, b: str) -> bool:
    """``dim`` and ``dimension``."""
    least = 3
    return min(len(a), len(b)) >= least and (a.startswith(b) or b.startswith(a))


def _stand_in(words: Sequence[str], name: Sequence[str]) -> bool:
    following = iter(name)
    return all(word in following for word in words)


__all__ = ["closest"]
