"""Syntax of LLVM code: functions, operands, and the layout of types."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable

from dolfinx_mbd.errors import SolverError

TYPE = r"(?:i\d+|double|ptr|void|\{[^{}]*\}|\[\d+ x [^\]]+\])"
VALUE = (
    r'(?:[%@]"[^"]*"|[%@][\w.$-]+|0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?'
    r"|true|false|null|undef|poison|zeroinitializer|\{[^{}]*\})"
)
"""Patterns of types and values of LLVM."""

_SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "double": 8, "ptr": 8}


def functions(code: str) -> Iterable[tuple[str, str, str]]:
    """Yield the name, head and body of each function that a module defines."""
    for match in re.finditer(r"^define ([^\n]*) \{\n(.*?)^\}", code, re.M | re.S):
        head = match[1]
        symbol = re.search(r'@("[^"]*"|[\w.$-]+)\(', head)
        assert symbol is not None
        yield plain("@" + symbol[1]), head, match[2]


def plain(symbol: str) -> str:
    """Return the name of a symbol, without its first letter and quotes."""
    return symbol[1:].strip('"')


def split(text: str) -> list[str]:
    """Return the parts of a list at commas outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, letter in enumerate(text):
        quoted ^= letter == '"'
        if not quoted:
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def up_to_bracket(text: str) -> str:
    """Return the text before the closing bracket of a list whose opening bracket is omitted."""
    depth = 1
    for end, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:end]
    raise SolverError(f"a list without its closing bracket: {text[:200]}")


def typed(text: str) -> tuple[str, str]:
    """Return the type and value of an operand or argument, without attributes."""
    match = re.match(rf"({TYPE})", text)
    values = re.findall(rf"(?:^|\s)({VALUE})$", text)
    if match is None or not values:
        raise SolverError(f"an operand without translation to C: {text[:200]}")
    return match[1], values[0]


def bits(kind: str) -> int:
    """Return the number of bits of the integer of C that holds an integer of LLVM."""
    return next(width for width in (8, 16, 32, 64) if width >= int(kind[1:]))


def masked(kind: str, expression: str) -> str:
    """Return an expression without the bits that do not belong to an integer of LLVM."""
    if int(kind[1:]) == bits(kind):
        return expression
    return f"({expression}) & UINT64_C({(1 << int(kind[1:])) - 1:#x})"


def size(kind: str) -> int:
    """Return the number of bytes of a type."""
    if kind in _SIZES:
        return _SIZES[kind]
    if kind.startswith("["):
        count, inner = array(kind)
        return count * size(inner)
    return offsets(kind)[-1]


def offsets(kind: str) -> list[int]:
    """Return the offsets of the members of a structure, and its size."""

    def aligned(offset: int, alignment: int) -> int:
        return (offset + alignment - 1) // alignment * alignment

    starts, end, largest = [], 0, 1
    for member in split(kind[1:-1]):
        alignment = min(size(member), 8)
        largest = max(largest, alignment)
        starts.append(aligned(end, alignment))
        end = starts[-1] + size(member)
    return [*starts, aligned(end, largest)]


def array(kind: str) -> tuple[int, str]:
    """Return the number and the type of the members of an array."""
    match = re.fullmatch(r"\[(\d+) x (.+)\]", kind)
    assert match is not None, kind
    return int(match[1]), match[2]


def place(kind: str, indices: list[str]) -> tuple[str, str]:
    """Return the kind of a member of a structure or an array, and the access to it."""
    access = ""
    for index in indices:
        if kind.startswith("["):
            kind, access = array(kind)[1], f"{access}.a[{index}]"
        else:
            kind, access = split(kind[1:-1])[int(index)], f"{access}.m{index}"
    return kind, access


def number(kind: str, value: str) -> str:
    """Return a constant number in C."""
    if value in ("undef", "poison", "zeroinitializer", "null", "false"):
        return "0"
    if value == "true":
        return "1"
    if kind == "double":
        if not value.startswith("0x"):
            return repr(float(value))
        (exact,) = struct.unpack("<d", int(value, 16).to_bytes(8, "little"))
        return repr(exact) if math.isfinite(exact) else f"number(UINT64_C({value}))"
    integer = 0 if kind == "ptr" else int(value) % (1 << int(kind[1:]))
    return f"UINT64_C({integer:#x})" if bits(kind) == 64 else f"{integer}U"
