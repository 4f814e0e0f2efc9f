"""SHA-256 as an SQL expression, for SQLite: its triggers have no hash function, and foreign workers bring their own SQLite.

With it a trigger can verify a secret of which the database holds only the digest.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

KEY_CHARS: Final = 32  # length of the hashed text: one block of the algorithm
_ROUNDS: Final = 64
_MASK: Final = 0xFFFFFFFF
_WORDS: Final = tuple(f"w{number}" for number in range(16))
_STATE: Final = tuple("abcdefgh")


def sha256_sql(text: str) -> str:
    """Return SQL for the hexadecimal SHA-256 digest of an expression: a text of 32 ASCII characters."""
    columns = ", ".join(("n", *_WORDS, *_STATE))
    first = ", ".join(("0", *_first_block(text), *(str(word) for word in _initial_state())))
    following = ", ".join(("n + 1", *_WORDS[1:], _next_word(), *_next_state()))
    digest = " || ".join(
        f"printf('%08x', ({name} + {word}) & {_MASK})" for name, word in zip(_STATE, _initial_state(), strict=True)
    )
    return (
        f"(WITH RECURSIVE round({columns}) AS (SELECT {first}"
        f" UNION ALL SELECT {following} FROM round WHERE n < {_ROUNDS})"
        f" SELECT {digest} FROM round WHERE n = {_ROUNDS})"
    )


def _first_block(text: str) -> list[str]:
    """Return the words of the padded message."""
    words = [
        " | ".join(f"(unicode(substr({text}, {4 * word + byte + 1}, 1)) << {24 - 8 * byte})" for byte in range(4))
        for word in range(KEY_CHARS // 4)
    ]
    return [*words, str(1 << 31), *["0"] * 6, str(8 * KEY_CHARS)]


def _next_word() -> str:
    low, high = (
        _xor(_rotate("w1", 7), _rotate("w1", 18), "w1 >> 3"),
        _xor(_rotate("w14", 17), _rotate("w14", 19), "w14 >> 10"),
    )
    return f"(w0 + {low} + w9 + {high}) & {_MASK}"


def _next_state() -> list[str]:
    """Return the expressions of the state after one round."""
    digits = "".join(f"{word:010}" for word in _round_constants())
    constant = f"CAST(substr('{digits}', n * 10 + 1, 10) AS INTEGER)"
    sum_e = _xor(_rotate("e", 6), _rotate("e", 11), _rotate("e", 25))
    sum_a = _xor(_rotate("a", 2), _rotate("a", 13), _rotate("a", 22))
    one = f"h + {sum_e} + ((e & f) | (~e & g)) + {constant} + w0"
    two = f"{sum_a} + ((a & b) | (a & c) | (b & c))"
    return [f"({one} + {two}) & {_MASK}", "a", "b", "c", f"(d + {one}) & {_MASK}", "e", "f", "g"]


def _rotate(word: str, bits: int) -> str:
    return f"((({word} >> {bits}) | ({word} << {32 - bits})) & {_MASK})"


def _xor(first: str, second: str, third: str) -> str:
    """Return the exclusive or, which SQLite has no operator for."""
    both = f"(({first} | {second}) - ({first} & {second}))"
    return f"(({both} | ({third})) - ({both} & ({third})))"


def _round_constants() -> list[int]:
    """Return the first 32 bits of the fractional parts of the cube roots of the first 64 primes."""
    return [_cube_root(prime << 96) & _MASK for prime in _primes(_ROUNDS)]


def _initial_state() -> list[int]:
    """Return the first 32 bits of the fractional parts of the square roots of the first 8 primes."""
    return [isqrt(prime << 64) & _MASK for prime in _primes(len(_STATE))]


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found


def _cube_root(number: int) -> int:
    """Return the integer cube root, by Newton's method."""
    root = 1 << (number.bit_length() // 3 + 1)
    while (closer := (2 * root + number // root**2) // 3) < root:
        root = closer
    return root
