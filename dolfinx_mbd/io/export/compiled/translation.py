"""Translation of LLVM code without vectors and exceptions to C99.

Each function of LLVM becomes a function of C, each basic block a label, and each value a variable.
Integers are unsigned in C, with conversions where an operation is signed; memory is accessed by
`memcpy`. The C code thus computes the same numbers as the LLVM code. `support.c` has the functions
that numba's code calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dolfinx_mbd.errors import SolverError

__all__ = ["to_c"]

_TYPE = r"(?:i\d+|double|ptr|void|\{[^{}]*\}|\[\d+ x [^\]]+\])"
_VALUE = (
    r'(?:[%@]"[^"]*"|[%@][\w.$-]+|0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?'
    r"|true|false|null|undef|poison|zeroinitializer|\{[^{}]*\})"
)
_SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "double": 8, "ptr": 8}
_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "shl": "<<", "and": "&", "or": "|", "xor": "^",
    "lshr": ">>", "udiv": "/", "urem": "%", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/",
    "ashr": ">>", "sdiv": "/", "srem": "%",
}  # fmt: skip
_SIGNED = {"ashr", "sdiv", "srem"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MATHS = {"fabs", "sqrt", "sin", "cos", "tan", "pow", "floor", "ceil", "exp", "log", "log10"}
_IGNORED = ("llvm.lifetime", "llvm.assume", "llvm.dbg", "llvm.experimental.noalias")


def to_c(code: str, entry: str) -> str:
    """Return C code for a function of LLVM code and all functions that it calls.

    Args:
        code: Text of an LLVM module.
        entry: Name of the function; in C it has the name `mechanism_run`.

    Raises:
        SolverError: The code has an instruction without translation.
    """
    bodies = {name: (head, text) for name, head, text in _functions(code)}
    provided = {"NRT_incref", "NRT_decref"}
    order, waiting = [], [entry]
    while waiting:
        name = waiting.pop()
        if name in order or name not in bodies or name in provided:
            continue
        order.append(name)
        waiting += [_plain(x) for x in re.findall(r'@(?:"[^"]*"|[\w.$-]+)', bodies[name][1])]
    names = {name: f"f{k}" for k, name in enumerate(order)} | {entry: "mechanism_run"}
    module = _Module(code, names)
    texts = [module.function(*bodies[name]) for name in order]
    declared = [f"{'' if name == entry else 'static '}{module.heads[name]};" for name in order]
    return "\n".join([*module.structs.values(), *module.globals.values(), *declared, *texts, ""])


def _functions(code: str) -> Iterable[tuple[str, str, str]]:
    for match in re.finditer(r"^define ([^\n]*) \{\n(.*?)^\}", code, re.M | re.S):
        head = match[1]
        symbol = re.search(r'@("[^"]*"|[\w.$-]+)\(', head)
        assert symbol is not None
        yield _plain("@" + symbol[1]), head, match[2]


def _plain(symbol: str) -> str:
    return symbol[1:].strip('"')


def _split(text: str) -> list[str]:
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


def _typed(text: str) -> tuple[str, str]:
    """Return type and value of an operand or argument, without attributes."""
    match = re.match(rf"({_TYPE})", text)
    values = re.findall(rf"(?:^|\s)({_VALUE})$", text)
    if match is None or not values:
        raise SolverError(f"an operand without translation to C: {text[:200]}")
    return match[1], values[0]


def _bits(kind: str) -> int:
    """Return the bits of the integer of C that holds an integer of LLVM."""
    return next(bits for bits in (8, 16, 32, 64) if bits >= int(kind[1:]))


def _masked(kind: str, expression: str) -> str:
    """Return an expression without the bits that do not belong to an integer of LLVM."""
    if int(kind[1:]) == _bits(kind):
        return expression
    return f"({expression}) & UINT64_C({(1 << int(kind[1:])) - 1:#x})"


def _size(kind: str) -> int:
    if kind in _SIZES:
        return _SIZES[kind]
    if kind.startswith("["):
        count, inner = _array(kind)
        return count * _size(inner)
    return _offsets(kind)[-1]


def _offsets(kind: str) -> list[int]:
    """Return the offsets of the members of a structure, and its size."""
    offsets, at, largest = [], 0, 1
    for member in _split(kind[1:-1]):
        align = min(_size(member), 8)
        largest, at = max(largest, align), -(-at // align) * align
        offsets.append(at)
        at += _size(member)
    return [*offsets, -(-at // largest) * largest]


def _array(kind: str) -> tuple[int, str]:
    """Return length and kind of the members of an array."""
    match = re.fullmatch(r"\[(\d+) x (.+)\]", kind)
    assert match is not None, kind
    return int(match[1]), match[2]


def _place(kind: str, indices: list[str]) -> tuple[str, str]:
    """Return the kind of a member of a structure or an array, and the access to it."""
    access = ""
    for index in indices:
        if kind.startswith("["):
            kind, access = _array(kind)[1], f"{access}.a[{index}]"
        else:
            kind, access = _split(kind[1:-1])[int(index)], f"{access}.m{index}"
    return kind, access


class _Module:
    """Structures, constants and heads of functions of a module."""

    def __init__(self, code: str, names: dict[str, str]) -> None:
        self.names, self.heads = names, dict[str, str]()
        self.structs, self.globals = dict[str, str](), dict[str, str]()
        self._constants = {
            _plain(m[1]): m[2]
            for m in re.finditer(r'^(@(?:"[^"]*"|[\w.$-]+)) = ([^\n]*)$', code, re.M)
        }
        self._symbols: dict[str, str] = {}
        self._struct_names: dict[str, str] = {}

    def type(self, kind: str) -> str:
        """Return the type in C."""
        if kind[0] in "{[":
            if kind not in self.structs:
                if kind.startswith("["):
                    length, member = _array(kind)
                    inner = f"{self.type(member)} a[{length}];"
                else:
                    members = enumerate(_split(kind[1:-1]))
                    inner = " ".join(f"{self.type(m)} m{k};" for k, m in members)
                name = f"s{len(self.structs)}"  # after those of the members
                text = f"typedef struct {{ {inner} }} {name};\nACCESS({name}, {name})"
                self.structs[kind] = text
                self._struct_names[kind] = name
            return self._struct_names[kind]
        simple = {"double": "double", "ptr": "char *", "void": "void"}
        if kind in simple:
            return simple[kind]
        if re.fullmatch(r"i\d+", kind) and int(kind[1:]) <= 64:
            return f"uint{_bits(kind)}_t"
        raise SolverError(f"a type without translation to C: {kind}")

    def constant(self, symbol: str) -> str:
        """Return the address of a constant; messages of errors are not translated."""
        name = _plain(symbol)
        if name in self.names or name.startswith("PyExc_"):
            return f"(char *){self.names.get(name, name)}"
        if name not in self._symbols:
            self._symbols[name] = label = f"g{len(self._symbols)}"
            text = self._constants.get(name, "")
            match = re.search(r"constant \[(\d+) x (i64|double)\] \[(.*)\]", text)
            if match:
                inner = ", ".join(_number(*_typed(x)) for x in _split(match[3]))
                kind = self.type(match[2])
                self.globals[name] = f"static {kind} {label}[] = {{{inner}}};"
            elif "picklebuf" in name or "NumbaEnv" in name or name.startswith(".const."):
                self.globals[name] = f"static char {label}[64];"
            else:
                raise SolverError(f"a constant without translation to C: {name[:80]} {text[:80]}")
        return f"(char *){self._symbols[name]}"

    def function(self, head: str, text: str) -> str:
        """Return the definition of a function."""
        return _Function(self, head).define(text)


def _number(kind: str, value: str) -> str:
    if value in ("undef", "poison", "zeroinitializer", "null", "false"):
        return "0"
    if value == "true":
        return "1"
    if kind == "double":
        if value.startswith("0x"):
            return f"number(UINT64_C({value}))"
        return repr(float(value))
    integer = 0 if kind == "ptr" else int(value) % (1 << int(kind[1:]))
    return f"UINT64_C({integer:#x})" if _bits(kind) == 64 else f"{integer}U"


class _Function:
    """Translation of one function."""

    def __init__(self, module: _Module, head: str) -> None:
        self.module = module
        self.values: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.lines: list[str] = []
        self.phis: dict[str, list[tuple[str, str, dict[str, str]]]] = {}
        symbol = re.search(r'@("[^"]*"|[\w.$-]+)\(', head)
        assert symbol is not None
        before, after = head[: symbol.start()], head[symbol.end() :]
        depth, end = 1, 0
        while depth:
            depth += (after[end] == "(") - (after[end] == ")")
            end += 1
        result = re.findall(rf"(?:^|\s)({_TYPE})(?=\s|$)", before)[-1]
        arguments = [_typed(part) for part in _split(after[: end - 1])]
        declared = [f"{module.type(kind)} {self.value(name, kind)}" for kind, name in arguments]
        self.given = set(self.values)
        name = _plain("@" + symbol[1])
        self.head = f"{module.type(result)} {module.names[name]}({', '.join(declared) or 'void'})"
        module.heads[name] = self.head

    def value(self, name: str, kind: str) -> str:
        """Return the expression of a value; local values become variables."""
        if name.startswith("%"):
            self.kinds.setdefault(name, kind)
            return self.values.setdefault(name, f"v{len(self.values)}")
        if name.startswith("@"):
            return self.module.constant(name)
        if kind[0] in "{[":
            members = _split(name[1:-1]) if name.startswith("{") else []
            inner = ", ".join(self.value(*reversed(_typed(m))) for m in members)
            return f"({self.module.type(kind)}){{{inner or '0'}}}"
        return f"(char *){_number(kind, name)}" if kind == "ptr" else _number(kind, name)

    def label(self, name: str) -> str:
        """Return the label of a block."""
        return self.labels.setdefault(_plain(name), f"b{len(self.labels)}")

    def define(self, text: str) -> str:
        """Return the definition."""
        text = re.sub(r"(switch [^\n]*\[)\n(.*?)\n\s*\]", lambda m: m[1] + re.sub(r"\s+", " ", m[2])
                      + " ]", text, flags=re.S)  # fmt: skip
        blocks: list[tuple[str, list[str]]] = [("entry", [])]
        for line in text.splitlines():
            line = re.sub(r",? ![\w.]+ ![\w.]+", "", line)
            line = re.sub(r"(?<!c) #\d+$", "", line)
            match = re.match(r'("[^"]*"|[\w.$-]+):', line)
            if match:
                if blocks == [("entry", [])]:
                    blocks = []
                blocks.append((match[1].strip('"'), []))
            elif line.startswith("  "):
                blocks[-1][1].append(line.strip())
        for block, lines in blocks:
            self.phis[block] = [self._phi(line) for line in lines if " = phi " in line]
        for block, lines in blocks:
            self.block = block
            self.lines.append(f"{self.label('%' + block)}:;")
            self.lines += [
                f"  {self.values[name]} = {self.values[name]}p;" for name, _, _ in self.phis[block]
            ]
            for line in lines:
                if " = phi " not in line:
                    self._instruction(line)
        names = {name: kind for name, kind in self.kinds.items() if name not in self.given}
        variables = [f"  {self.module.type(k)} {self.values[n]};" for n, k in names.items()]
        incoming = [
            f"  {self.module.type(kind)} {self.values[name]}p;"
            for phis in self.phis.values()
            for name, kind, _ in phis
        ]
        return "\n".join([f"{'' if 'mechanism_run' in self.head else 'static '}{self.head}", "{",
                          *variables, *incoming, *self.lines, "}"])  # fmt: skip

    def _phi(self, line: str) -> tuple[str, str, dict[str, str]]:
        match = re.fullmatch(rf"({_VALUE}) = phi ({_TYPE}) (.*)", line)
        assert match is not None, line
        self.value(match[1], match[2])
        pairs = re.findall(rf"\[ ({_VALUE}), (%\"[^\"]*\"|%[\w.$-]+) \]", match[3])
        return match[1], match[2], {_plain(block): value for value, block in pairs}

    def _jump(self, target: str) -> str:
        name = _plain(target)
        copies = [
            f"{self.values[phi]}p = {self.value(values[self.block], kind)};"
            for phi, kind, values in self.phis[name]
        ]
        return f"{{ {' '.join([*copies, f'goto {self.label(target)};'])} }}"

    def _instruction(self, line: str) -> None:
        match = re.match(rf"({_VALUE}) = (.*)", line)
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
        """Return type and expression of arithmetic and of conversions."""
        match = re.fullmatch(rf"(\w+)(?: \w+)*? ({_TYPE}) ({_VALUE}), ({_VALUE})", text)
        if match and match[1] in _BINARY:
            operation, kind = match[1], match[2]
            a, b = (self.value(x, kind) for x in match.group(3, 4))
            if kind == "double":
                return kind, f"{a} {_BINARY[operation]} {b}"
            if operation in _SIGNED:
                a = f"({self._signed(kind)}){a}"
                b = b if operation == "ashr" else f"({self._signed(kind)}){b}"
            expression = f"({self.module.type(kind)})({a} {_BINARY[operation]} {b})"
            return kind, _masked(kind, expression)
        match = re.fullmatch(rf"(\w+)(?: \w+)* ({_TYPE}) ({_VALUE}) to ({_TYPE})", text)
        if match:
            return match[4], self._converted(match[1], match[2], match[3], match[4])
        match = re.fullmatch(rf"(fneg|freeze) ({_TYPE}) ({_VALUE})", text)
        if match:
            return match[2], ("-" if match[1] == "fneg" else "") + self.value(match[3], match[2])
        raise SolverError(f"an instruction without translation to C: {text[:300]}")

    def _signed(self, kind: str) -> str:
        if int(kind[1:]) != _bits(kind):
            raise SolverError(f"a signed operation without translation to C: {kind}")
        return f"int{kind[1:]}_t"

    def _converted(self, operation: str, source: str, name: str, kind: str) -> str:
        x, target = self.value(name, source), self.module.type(kind)
        if operation == "sext":
            return f"({target})-({self._signed(kind)}){x}" if source == "i1" else (
                f"({target})({self._signed(kind)})({self._signed(source)}){x}")  # fmt: skip
        if operation == "trunc":
            return f"({target})({_masked(kind, x)})"
        if operation == "sitofp":
            return f"(double)({self._signed(source)}){x}"
        if operation == "fptosi":
            return f"({target})({self._signed(kind)}){x}"
        if operation == "bitcast":
            if (source == "double") == (kind == "double"):
                return x
            return f"bits({x})" if source == "double" else f"number({x})"
        if operation in ("ptrtoint", "inttoptr"):
            return f"({target})(uintptr_t){x}"
        return f"({target}){x}"

    def _icmp(self, text: str) -> tuple[str, str]:
        match = re.fullmatch(rf"icmp(?: samesign)? (\w+) ({_TYPE}) ({_VALUE}), ({_VALUE})", text)
        assert match is not None, text
        test, kind = match[1], match[2]
        a, b = (self.value(x, kind) for x in match.group(3, 4))
        cast = "(uintptr_t)" if kind == "ptr" else ""
        if test[0] == "s":
            cast = f"({self._signed(kind)})"
        operator = _COMPARE[test if test in _COMPARE else test[1:]]
        return "i1", f"{cast}{a} {operator} {cast}{b}"

    def _fcmp(self, text: str) -> tuple[str, str]:
        match = re.fullmatch(rf"fcmp(?: \w+)*? (\w+) double ({_VALUE}), ({_VALUE})", text)
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
        if relation == "eq":
            return "i1", f"!(({a} < {b}) || ({a} > {b}))"
        return "i1", f"!({a} {opposite[relation]} {b})"

    def _select(self, text: str) -> tuple[str, str]:
        text = re.sub(r"^select(?: (?!i1 )\w+)*", "select", text)
        (_, test), (kind, a), (_, b) = (_typed(x) for x in _split(text.removeprefix("select ")))
        parts = self.value(test, "i1"), self.value(a, kind), self.value(b, kind)
        return kind, "{} ? {} : {}".format(*parts)

    def _load(self, text: str) -> tuple[str, str]:
        kind, pointer, *_ = _split(re.sub(r"^load (atomic |volatile )?", "", text))
        access = self.module.type(kind).replace("char *", "pointer")
        return kind, f"LOAD({access}, {self.value(_typed(pointer)[1], 'ptr')})"

    def _store(self, text: str) -> tuple[str, str]:
        value, pointer, *_ = _split(text.removeprefix("store "))
        kind, name = _typed(value)
        target = self.value(_typed(pointer)[1], "ptr")
        access = self.module.type(kind).replace("char *", "pointer")
        return "void", f"STORE({access}, {target}, {self.value(name, kind)})"

    def _getelementptr(self, text: str) -> tuple[str, str]:
        kind, pointer, *indices = _split(
            re.sub(r"^getelementptr(?: (?:inbounds|nuw|nusw|inrange\([^)]*\)))*", "", text)
        )
        expression = self.value(_typed(pointer)[1], "ptr")
        for k, index in enumerate(indices):
            width, name = _typed(index)
            if k and kind.startswith("{"):
                expression += f" + {_offsets(kind)[int(name)]}"
                kind = _split(kind[1:-1])[int(name)]
                continue
            if k:
                kind = _array(kind)[1]
            expression += (
                f" + (int64_t)({self._signed(width)}){self.value(name, width)} * {_size(kind)}"
            )
        return "ptr", expression

    def _alloca(self, text: str) -> tuple[str, str]:
        kind, *rest = _split(text.removeprefix("alloca "))
        count = [int(_typed(x)[1]) for x in rest if not x.startswith("align")]
        name = f"m{len(self.lines)}"
        size = -(-_size(kind) * (count[0] if count else 1) // 8)
        self.lines.insert(0, f"  uint64_t {name}[{max(size, 1)}];")
        return "ptr", f"(char *){name}"

    def _extractvalue(self, text: str) -> tuple[str, str]:
        operand, *indices = _split(text.removeprefix("extractvalue "))
        kind, name = _typed(operand)
        member, access = _place(kind, indices)
        return member, self.value(name, kind) + access

    def _insertvalue(self, text: str) -> tuple[str, str]:
        operand, member, *indices = _split(text.removeprefix("insertvalue "))
        kind, name = _typed(operand)
        old, (inner, value) = self.value(name, kind), _typed(member)
        copied = f"i{len(self.lines)}"
        self.lines.insert(0, f"  {self.module.type(kind)} {copied};")
        self.lines.append(f"  {copied} = {old};")
        self.lines.append(f"  {copied}{_place(kind, indices)[1]} = {self.value(value, inner)};")
        return kind, copied

    def _br(self, text: str) -> tuple[str, str]:
        targets = re.findall(r'label (%"[^"]*"|%[\w.$-]+)', text)
        if len(targets) == 1:
            return "void", self._jump(targets[0])[2:-2].rstrip("; ")
        test = self.value(_typed(_split(text.removeprefix("br "))[0])[1], "i1")
        self.lines.append(f"  if ({test}) {self._jump(targets[0])} else {self._jump(targets[1])}")
        return "void", ""

    def _switch(self, text: str) -> tuple[str, str]:
        head, cases = text.removeprefix("switch ").split("[", 1)
        kind, name = _typed(_split(head)[0])
        label = r'label (%"[^"]*"|%[\w.$-]+)'
        self.lines.append(f"  switch ({self.value(name, kind)}) {{")
        for value, target in re.findall(rf"i\d+ (-?\d+), {label}", cases):
            self.lines.append(f"  case {_number(kind, value)}: {self._jump(target)}")
        default = re.findall(label, head)[0]
        self.lines.append(f"  default: {self._jump(default)}")
        self.lines.append("  }")
        return "void", ""

    def _ret(self, text: str) -> tuple[str, str]:
        if text == "ret void":
            return "void", "return"
        kind, name = _typed(text.removeprefix("ret "))
        return "void", f"return {self.value(name, kind)}"

    def _unreachable(self, text: str) -> tuple[str, str]:
        return "void", "abort()"

    def _call(self, text: str) -> tuple[str, str]:
        match = re.search(r'@("[^"]*"|[\w.$-]+)\(', text)
        if match is None:
            raise SolverError(f"a call without translation to C: {text[:300]}")
        before, name = text[: match.start()], match[1].strip('"')
        kind = re.findall(rf"(?:^|\s)({_TYPE})(?=\s)", before)[0]
        inner, depth, end = text[match.end() :], 1, 0
        while depth:
            depth += (inner[end] == "(") - (inner[end] == ")")
            end += 1
        if name.startswith(_IGNORED):
            return "void", ""
        pairs = [_typed(part) for part in _split(inner[: end - 1])]
        arguments = [self.value(x, k) for k, x in pairs]
        return kind, self._called(name, kind, arguments)

    def _called(self, name: str, kind: str, arguments: list[str]) -> str:
        """Return the call of a function, of the C library for intrinsic functions."""
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
                result = f"{a} {_BINARY[parts[1][1:]]} {b}"
                return f"({members}){{{result}, {parts[1]}_overflows({a}, {b})}}"
            else:
                raise SolverError(f"a function without translation to C: {name}")
        return f"{function}({', '.join(arguments)})"
