"""Text from elsewhere, for a terminal: what would act on it is shown and not executed.

Error messages and payloads are what strangers have sent. An escape sequence in one could move the
cursor, change what was printed before, or the title of the window.
"""

import unicodedata
from typing import Final

# Controls, what reorders or hides text, surrogates, separators of lines and paragraphs. The joiners
# of Arabic, Indic scripts and emoji are formats as well, and hide nothing.
_ACTING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS: Final = frozenset("\u200c\u200d")


def is_visible(character: str) -> bool:
    """Whether a terminal shows a character and does nothing else."""
    return unicodedata.category(character) not in _ACTING or character in _JOINERS


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with each character that acts written as in Python: ``\x1b``.

    :param keep: characters to leave as they are, such as a newline.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if is_visible(c) or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
