"""Instructions of LLVM code as statements and expressions of C."""

from __future__ import annotations

import re
from typing import Protocol

from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.io.export.compiled.syntax import (
    TYPE,
    VALUE,
    array,
    bits,
    masked,
    number,
    offsets,
    place,
    plain,
    size,
    split,
    typed,
    up_to_bracket,
)

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "shl": "<<", "and": "&", "or": "|", "xor": "^",
    "lshr": ">>", "udiv": "/", "urem": "%", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/",
    "ashr": ">>", "sdiv": "/", "srem": "%",
}  # fmt: skip
"""Operators of C for the instructions with two operands."""

_SIGNED = {"ashr", "sdiv", "srem"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""Operators of C for comparisons, whose names in LLVM have a prefix: s, u or o."""

_MATHS = {"fabs", "sqrt", "sin", "cos", "tan", "pow", "floor", "ceil", "exp", "log", "log10"}
_IGNORED = ("llvm.lifetime", "llvm.assume", "llvm.dbg", "llvm.experimental.noalias")


class Types(Protocol):
    """Types, constants and names of functions of a module, in C."""

    names: dict[str, str]

    def type(self, kind: str) -> str:
        """Return the type in C."""

    def constant(self, symbol: str) -> str:
        """Return the address of a constant."""


class Instructions:
    """Translation of the instructions of one function.

    Args:
        module: Types, constants and names of functions.

    Attributes:
        lines: Statements of C.
        phis: Names, types and incoming values of the `phi` instructions of each block. The
            variable of such a value has a second one with the suffix `p`, which a jump sets before
            the block copies it, because a value may depend on the others.
        values: Variables of C by the name of the value.
        kinds: Types of the values by name.
        labels: Labels of C by the name of the block.
        block: Name of the present block.

    A method such as `_icmp` translates the instruction `icmp` with the text of the instruction. It
    returns the type of its result, `void` without one, and an expression or a statement.
    """

    def __init__(self, module: Types) -> None:
        self.module = module
        self.values: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.lines: list[str] = []
        self.phis: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        self.block = ""

    def value(self, name: str, kind: str) -> str:
        """Return the expression of a value; local values become variables."""
        if name.startswith("%"):
            self.kinds.setdefault(name, kind)
            return self.values.setdefault(name, f"v{len(self.values)}")
        if name.startswith("@"):
            return self.module.constant(name)
        if kind[0] in "{[":
            members = split(name[1:-1]) if name.startswith("{") else []
            inner = ", ".join(self.value(*reversed(typed(m))) for m in members)
            return f"({self.module.type(kind)}){{{inner or '0'}}}"
        return f"(char *){number(kind, name)}" if kind == "ptr" else number(kind, name)

    def label(self, name: str) -> str:
        """Return the label of a block."""
        return self.labels.setdefault(plain(name), f"b{len(self.labels)}")

    def _jump(self, target: str) -> str:
        """Return a block `{ ...; }` that sets the phi values of a target and goes to it."""
        name = plain(target)
        copies = [
            f"{self.values[phi]}p = {self.value(values[self.block], kind)};"
            for phi, kind, values in self.phis[name]
        ]
        return f"{{ {' '.join([*copies, f'goto {self.label(target)};'])} }}"

    def instruction(self, line: str) -> None:
        """Add the statements of an instruction."""
        match = re.match(rf"({VALUE}) = (.*)", line)
        result, text = (match[1], match[2]) if match else ("", line)
        operation = re.sub(r"^(tail|musttail|notail) ", "", text)
        method = getattr(self, f"_{operation.split()[0]}", None)
        if method is not None:
            kind, expression = method(operation)
        else:
            kind, expression = self._simple(operation)
        if result and kind != "void":
            self.lines.append(f"  {self.value(result, kind)} = {expression};")
        elif expression:
            self.lines.append(f"  {expression};")

    # ---- kinds of instructions ------------------------------------------------------------------
    def _simple(self, text: str) -> tuple[str, str]:
        """Return the type and expression of arithmetic and of conversions."""
        match = re.fullmatch(rf"(\w+)(?: \w+)*? ({TYPE}) ({VALUE}), ({VALUE})", text)
        if match and match[1] in _BINARY:
            operation, kind = match[1], match[2]
            a, b = (self.value(x, kind) for x in match.group(3, 4))
            if kind == "double":
                return kind, f"{a} {_BINARY[operation]} {b}"
            if operation in _SIGNED:
                a = f"({self._signed(kind)}){a}"
                b = b if operation == "ashr" else f"({self._signed(kind)}){b}"
            expression = f"({self.module.type(kind)})({a} {_BINARY[operation]} {b})"
            return kind, masked(kind, expression)
        match = re.fullmatch(rf"(\w+)(?: \w+)* ({TYPE}) ({VALUE}) to ({TYPE})", text)
        if match:
            return match[4], self._converted(match[1], match[2], match[3], match[4])
        match = re.fullmatch(rf"(fneg|freeze) ({TYPE}) ({VALUE})", text)
        if match:
            return match[2], ("-" if match[1] == "fneg" else "") + self.value(match[3], match[2])
        raise SolverError(f"an instruction without translation to C: {text[:300]}")

    def _signed(self, kind: str) -> str:
        """Return the signed integer of C that has exactly the bits of an integer of LLVM."""
        if int(kind[1:]) != bits(kind):
            raise SolverError(f"a signed operation without translation to C: {kind}")
        return f"int{kind[1:]}_t"

    def _converted(self, operation: str, source: str, name: str, kind: str) -> str:
        """Return the C expression of a conversion between two types of LLVM."""
        x, target = self.value(name, source), self.module.type(kind)
        if operation == "sext":
            return f"({target})-({self._signed(kind)}){x}" if source == "i1" else (
                f"({target})({self._signed(kind)})({self._signed(source)}){x}")  # fmt: skip
        if operation == "trunc":
            return f"({target})({masked(kind, x)})"
        if operation == "sitofp":
            return f"(double)({self._signed(source)}){x}"
        if operation == "fptosi":
            return f"({target})({self._signed(kind)}){x}"
        if operation == "bitcast":
            if (source == "double") == (kind == "double"):  # integers of the same type in C
                return x
            return f"bits({x})" if source == "double" else f"number({x})"
        if operation in ("ptrtoint", "inttoptr"):
            return f"({target})(uintptr_t){x}"
        return f"({target}){x}"

    def _icmp(self, text: str) -> tuple[str, str]:
        """Translate a comparison of integers or pointers."""
        match = re.fullmatch(rf"icmp(?: samesign)? (\w+) ({TYPE}) ({VALUE}), ({VALUE})", text)
        assert match is not None, text
        test, kind = match[1], match[2]
        a, b = (self.value(x, kind) for x in match.group(3, 4))
        cast = "(uintptr_t)" if kind == "ptr" else ""
        if test[0] == "s":
            cast = f"({self._signed(kind)})"
        operator = _COMPARE[test if test in _COMPARE else test[1:]]
        return "i1", f"{cast}{a} {operator} {cast}{b}"

    def _fcmp(self, text: str) -> tuple[str, str]:
        """Translate a comparison of floating-point numbers."""
        match = re.fullmatch(rf"fcmp(?: \w+)*? (\w+) double ({VALUE}), ({VALUE})", text)
        assert match is not None, text
        a, b = (self.value(x, "double") for x in match.group(2, 3))
        test = match[1]
        if test in ("ord", "uno"):
            return "i1", f"{'!' if test == 'ord' else ''}(({a} != {a}) || ({b} != {b}))"
        relation = test[1:]
        if test == "une":
            return "i1", f"{a} != {b}"
        if test[0] == "o":
            if relation == "ne":
                return "i1", f"({a} < {b}) || ({a} > {b})"
            return "i1", f"{a} {_COMPARE[relation]} {b}"
        opposite = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}
        # "Unordered" comparisons are also true for a NaN: the opposite is false
        if relation == "eq":
            return "i1", f"!(({a} < {b}) || ({a} > {b}))"
        return "i1", f"!({a} {opposite[relation]} {b})"

    def _select(self, text: str) -> tuple[str, str]:
        """Translate a choice between two values."""
        text = re.sub(r"^select(?: (?!i1 )\w+)*", "select", text)
        (_, test), (kind, a), (_, b) = (typed(x) for x in split(text.removeprefix("select ")))
        parts = self.value(test, "i1"), self.value(a, kind), self.value(b, kind)
        return kind, "{} ? {} : {}".format(*parts)

    def _load(self, text: str) -> tuple[str, str]:
        """Translate the read of a value from memory."""
        kind, pointer, *_ = split(re.sub(r"^load (atomic |volatile )?", "", text))
        access = self.module.type(kind).replace("char *", "pointer")
        return kind, f"LOAD({access}, {self.value(typed(pointer)[1], 'ptr')})"

    def _store(self, text: str) -> tuple[str, str]:
        """Translate the write of a value to memory."""
        value, pointer, *_ = split(text.removeprefix("store "))
        kind, name = typed(value)
        target = self.value(typed(pointer)[1], "ptr")
        access = self.module.type(kind).replace("char *", "pointer")
        return "void", f"STORE({access}, {target}, {self.value(name, kind)})"

    def _getelementptr(self, text: str) -> tuple[str, str]:
        """Translate the address of an element of an array or a structure."""
        kind, pointer, *indices = split(
            re.sub(r"^getelementptr(?: (?:inbounds|nuw|nusw|inrange\([^)]*\)))*", "", text)
        )
        expression = self.value(typed(pointer)[1], "ptr")
        for k, index in enumerate(indices):
            width, name = typed(index)
            if k and kind.startswith("{"):
                expression += f" + {offsets(kind)[int(name)]}"
                kind = split(kind[1:-1])[int(name)]
                continue
            if k:
                kind = array(kind)[1]
            expression += (
                f" + (int64_t)({self._signed(width)}){self.value(name, width)} * {size(kind)}"
            )
        return "ptr", expression

    def _alloca(self, text: str) -> tuple[str, str]:
        """Translate the allocation of local memory."""
        kind, *rest = split(text.removeprefix("alloca "))
        count = [int(typed(x)[1]) for x in rest if not x.startswith("align")]
        name = f"m{len(self.lines)}"
        num_bytes = size(kind) * (count[0] if count else 1)
        words = (num_bytes + 7) // 8
        self.lines.insert(0, f"  uint64_t {name}[{max(words, 1)}];")
        return "ptr", f"(char *){name}"

    def _extractvalue(self, text: str) -> tuple[str, str]:
        """Translate the read of a member of a structure."""
        operand, *indices = split(text.removeprefix("extractvalue "))
        kind, name = typed(operand)
        member, access = place(kind, indices)
        return member, self.value(name, kind) + access

    def _insertvalue(self, text: str) -> tuple[str, str]:
        """Translate a copy of a structure with one member replaced."""
        operand, member, *indices = split(text.removeprefix("insertvalue "))
        kind, name = typed(operand)
        old, (inner, value) = self.value(name, kind), typed(member)
        copied = f"i{len(self.lines)}"
        self.lines.insert(0, f"  {self.module.type(kind)} {copied};")
        self.lines.append(f"  {copied} = {old};")
        self.lines.append(f"  {copied}{place(kind, indices)[1]} = {self.value(value, inner)};")
        return kind, copied

    def _br(self, text: str) -> tuple[str, str]:
        """Translate a jump, conditional or not."""
        targets = re.findall(r'label (%"[^"]*"|%[\w.$-]+)', text)
        if len(targets) == 1:
            # the statements of the jump without braces; the caller adds the last semicolon
            statements = self._jump(targets[0]).removeprefix("{ ").removesuffix("; }")
            return "void", statements
        test = self.value(typed(split(text.removeprefix("br "))[0])[1], "i1")
        self.lines.append(f"  if ({test}) {self._jump(targets[0])} else {self._jump(targets[1])}")
        return "void", ""

    def _switch(self, text: str) -> tuple[str, str]:
        """Translate a jump to one of several blocks."""
        head, cases = text.removeprefix("switch ").split("[", 1)
        kind, name = typed(split(head)[0])
        label = r'label (%"[^"]*"|%[\w.$-]+)'
        self.lines.append(f"  switch ({self.value(name, kind)}) {{")
        for value, target in re.findall(rf"i\d+ (-?\d+), {label}", cases):
            self.lines.append(f"  case {number(kind, value)}: {self._jump(target)}")
        default = re.findall(label, head)[0]
        self.lines.append(f"  default: {self._jump(default)}")
        self.lines.append("  }")
        return "void", ""

    def _ret(self, text: str) -> tuple[str, str]:
        """Translate a return."""
        if text == "ret void":
            return "void", "return"
        kind, name = typed(text.removeprefix("ret "))
        return "void", f"return {self.value(name, kind)}"

    def _unreachable(self, text: str) -> tuple[str, str]:
        """Translate the end of a block that is never reached."""
        return "void", "abort()"

    def _call(self, text: str) -> tuple[str, str]:
        """Translate the call of a function; calls that only inform LLVM are omitted."""
        match = re.search(r'@("[^"]*"|[\w.$-]+)\(', text)
        if match is None:
            raise SolverError(f"a call without translation to C: {text[:300]}")
        before, name = text[: match.start()], match[1].strip('"')
        kind = re.findall(rf"(?:^|\s)({TYPE})(?=\s)", before)[0]
        if name.startswith(_IGNORED):
            return "void", ""
        pairs = [typed(part) for part in split(up_to_bracket(text[match.end() :]))]
        arguments = [self.value(x, k) for k, x in pairs]
        return kind, self._called(name, kind, arguments)

    def _called(self, name: str, kind: str, arguments: list[str]) -> str:
        """Return the call of a function; intrinsic functions are those of C or of `support.c`."""
        function = self.module.names.get(name, name)
        parts = name.split(".")
        if parts[0] == "llvm":
            if parts[1] in ("memset", "memcpy", "memmove"):
                function, arguments = parts[1], arguments[:3]
            elif parts[1] in _MATHS:
                function = parts[1]
            elif parts[1] in ("smax", "smin", "umax", "umin") and parts[2] == "i64":
                function = parts[1]
            elif parts[2:3] == ["with"] and parts[-1] == "i64":
                members = self.module.type(kind)
                a, b = arguments
                operation = parts[1][1:]  # "sadd" adds signed integers
                result = f"{a} {_BINARY[operation]} {b}"
                return f"({members}){{{result}, {parts[1]}_overflows({a}, {b})}}"
            else:
                raise SolverError(f"a function without translation to C: {name}")
        return f"{function}({', '.join(arguments)})"
