"""Translation of LLVM code without vectors and exceptions to C99.

Each function of LLVM becomes a function of C, each basic block a label, and each value a variable.
Integers are unsigned in C, with conversions where an operation is signed; memory is accessed by
`memcpy`. The C code thus computes the same numbers as the LLVM code. `support.c` has the functions
that numba's code calls.
"""

from __future__ import annotations

import re

from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.io.export.compiled.instructions import Instructions
from dolfinx_mbd.io.export.compiled.syntax import (
    TYPE,
    VALUE,
    array,
    bits,
    functions,
    number,
    plain,
    split,
    typed,
    up_to_bracket,
)

__all__ = ["to_c"]


def to_c(code: str, entry: str) -> str:
    """Return C code for a function of LLVM code and all functions that it calls.

    Args:
        code: Text of an LLVM module.
        entry: Name of the function; in C it has the name `mechanism_run`.

    Raises:
        SolverError: The code has an instruction without translation.
    """
    bodies = {name: (head, text) for name, head, text in functions(code)}
    provided = {"NRT_incref", "NRT_decref"}  # functions in `support.c`
    order, waiting = [], [entry]
    while waiting:
        name = waiting.pop()
        if name in order or name not in bodies or name in provided:
            continue
        order.append(name)
        waiting += [plain(x) for x in re.findall(r'@(?:"[^"]*"|[\w.$-]+)', bodies[name][1])]
    names = {name: f"f{k}" for k, name in enumerate(order)} | {entry: "mechanism_run"}
    module = _Module(code, names)
    texts = [module.function(*bodies[name]) for name in order]
    declared = [f"{'' if name == entry else 'static '}{module.heads[name]};" for name in order]
    return "\n".join([*module.structs.values(), *module.globals.values(), *declared, *texts, ""])


class _Module:
    """Structures, constants and heads of functions of a module."""

    def __init__(self, code: str, names: dict[str, str]) -> None:
        self.names, self.heads = names, dict[str, str]()
        self.structs, self.globals = dict[str, str](), dict[str, str]()
        self._constants = {
            plain(m[1]): m[2]
            for m in re.finditer(r'^(@(?:"[^"]*"|[\w.$-]+)) = ([^\n]*)$', code, re.M)
        }
        self._symbols: dict[str, str] = {}
        self._struct_names: dict[str, str] = {}

    def type(self, kind: str) -> str:
        """Return the type in C."""
        if kind[0] in "{[":
            if kind not in self.structs:
                if kind.startswith("["):
                    length, member = array(kind)
                    inner = f"{self.type(member)} a[{length}];"
                else:
                    members = enumerate(split(kind[1:-1]))
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
            return f"uint{bits(kind)}_t"
        raise SolverError(f"a type without translation to C: {kind}")

    def constant(self, symbol: str) -> str:
        """Return the address of a constant; messages of errors are not translated."""
        name = plain(symbol)
        if name in self.names or name.startswith("PyExc_"):
            return f"(char *){self.names.get(name, name)}"
        if name not in self._symbols:
            self._symbols[name] = label = f"g{len(self._symbols)}"
            text = self._constants.get(name, "")
            match = re.search(r"constant \[(\d+) x (i64|double)\] \[(.*)\]", text)
            if match:
                inner = ", ".join(number(*typed(x)) for x in split(match[3]))
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


class _Function(Instructions):
    """Translation of one function."""

    def __init__(self, module: _Module, head: str) -> None:
        super().__init__(module)
        symbol = re.search(r'@("[^"]*"|[\w.$-]+)\(', head)
        assert symbol is not None
        before, after = head[: symbol.start()], head[symbol.end() :]
        result = re.findall(rf"(?:^|\s)({TYPE})(?=\s|$)", before)[-1]
        arguments = [typed(part) for part in split(up_to_bracket(after))]
        declared = [f"{module.type(kind)} {self.value(name, kind)}" for kind, name in arguments]
        self.parameters = set(self.values)
        name = plain("@" + symbol[1])
        self.head = f"{module.type(result)} {module.names[name]}({', '.join(declared) or 'void'})"
        module.heads[name] = self.head

    def define(self, text: str) -> str:
        """Return the definition."""
        # The cases of a switch on one line, as all other instructions
        text = re.sub(r"(switch [^\n]*\[)\n(.*?)\n\s*\]", lambda m: m[1] + re.sub(r"\s+", " ", m[2])
                      + " ]", text, flags=re.S)  # fmt: skip
        blocks: list[tuple[str, list[str]]] = [("entry", [])]
        for line in text.splitlines():
            line = re.sub(r",? ![\w.]+ ![\w.]+", "", line)  # metadata
            line = re.sub(r"(?<!c) #\d+$", "", line)  # attributes of a call
            match = re.match(r'("[^"]*"|[\w.$-]+):', line)
            if match:
                if blocks == [("entry", [])]:  # the first block has a label
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
                    self.instruction(line)
        names = {name: kind for name, kind in self.kinds.items() if name not in self.parameters}
        variables = [f"  {self.module.type(k)} {self.values[n]};" for n, k in names.items()]
        incoming = [
            f"  {self.module.type(kind)} {self.values[name]}p;"
            for phis in self.phis.values()
            for name, kind, _ in phis
        ]
        return "\n".join([f"{'' if 'mechanism_run' in self.head else 'static '}{self.head}", "{",
                          *variables, *incoming, *self.lines, "}"])  # fmt: skip

    def _phi(self, line: str) -> tuple[str, str, dict[str, str]]:
        """Return the name, type and incoming values by block of a `phi` instruction."""
        match = re.fullmatch(rf"({VALUE}) = phi ({TYPE}) (.*)", line)
        assert match is not None, line
        self.value(match[1], match[2])
        pairs = re.findall(rf"\[ ({VALUE}), (%\"[^\"]*\"|%[\w.$-]+) \]", match[3])
        return match[1], match[2], {plain(block): value for value, block in pairs}
