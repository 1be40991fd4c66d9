"""Contents of decks that are left out, because a flexible body has only the solids of a deck."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection

__all__ = [
    "LeftOut",
    "abaqus_element",
    "ansys_element",
    "nastran_card",
    "similar_card",
    "similar_command",
]

_SHOWN = 5  # unknown lines in a remark

_BEAMS, _SHELLS, _SPRINGS = "beams and bars", "shells and membranes", "springs and dampers"
_MASSES, _RIGID, _CONTACT = "point masses", "rigid elements and constraints", "contact"
_LOADS, _SUPPORTS, _CONNECTORS = "loads", "boundary conditions", "connectors and gaps"
_MATRICES = "matrices"

_ABAQUS_ELEMENTS = {
    r"MASS|ROTARYI": _MASSES,
    r"SPRING|DASHPOT": _SPRINGS,
    r"CONN|JOINT|GAP|ITS|ITT|DRAG|PSI|D$": _CONNECTORS,
    r"DCOUP|KCOUP|R2D|R3D|RAX|RB": _RIGID,
    r"B2|B3|PIPE|ELBOW|FRAME|T2D|T3D": _BEAMS,
    r"S\d|STRI|SC\d|US\d|M3D|MCL|SAX|MAX|MGAX": _SHELLS,
    r"COH|GK": "cohesive and gasket elements",
    r"U\d": "user elements",
}
"""Kinds of elements of Abaqus and CalculiX by the beginning of their type."""
_ABAQUS_FACETS = re.compile(r"CPS|CPE|CAX|CGAX|SFM|DC|AC|F2D|F3D|DS")
"""Beginnings of types whose elements give no remark, because they may only name facets."""

_ABAQUS = {
    **dict.fromkeys(("BOUNDARY", "BASE MOTION", "SUBMODEL"), _SUPPORTS),
    **dict.fromkeys(("CLOAD", "DLOAD", "DSLOAD", "TEMPERATURE", "INITIAL CONDITIONS"), _LOADS),
    **dict.fromkeys(("RIGID BODY", "MPC", "EQUATION", "COUPLING", "TIE"), _RIGID),
    **dict.fromkeys(("KINEMATIC COUPLING", "DISTRIBUTING COUPLING"), _RIGID),
    **dict.fromkeys(("SHELL TO SOLID COUPLING", "EMBEDDED ELEMENT", "FASTENER"), _RIGID),
    **dict.fromkeys(("CYCLIC SYMMETRY MODEL", "PRE-TENSION SECTION"), _RIGID),
    **dict.fromkeys(("CONTACT PAIR", "CONTACT", "CLEARANCE"), _CONTACT),
    **dict.fromkeys(("MATRIX INPUT", "SUBSTRUCTURE PROPERTY", "USER ELEMENT"), _MATRICES),
    **dict.fromkeys(("FOUNDATION",), _SPRINGS),
    **dict.fromkeys(("NONSTRUCTURAL MASS",), "nonstructural masses"),
}
"""Kinds by keywords of Abaqus and CalculiX."""

_HARMLESS = {
    *("HEADING", "PREPRINT", "RESTART", "PARAMETER", "INCLUDE", "PHYSICAL CONSTANTS", "TRANSFORM"),
    *("NODE", "ELEMENT", "NSET", "ELSET", "SURFACE", "MATERIAL", "SOLID SECTION", "ORIENTATION"),
    *("PART", "END PART", "ASSEMBLY", "END ASSEMBLY", "INSTANCE", "END INSTANCE", "STEP"),
    *("END STEP", "AMPLITUDE", "DISTRIBUTION", "DISTRIBUTION TABLE", "SYSTEM", "DISPLAY BODY"),
    *("SHELL SECTION", "SHELL GENERAL SECTION", "BEAM SECTION", "BEAM GENERAL SECTION"),
    *("MEMBRANE SECTION", "SURFACE SECTION", "MASS", "ROTARY INERTIA", "SPRING", "DASHPOT"),
    *("CONNECTOR SECTION", "CONNECTOR BEHAVIOR", "CONNECTOR ELASTICITY", "CONNECTOR DAMPING"),
    *("CONNECTOR STOP", "CONNECTOR LOCK", "CONNECTOR FRICTION", "CONNECTOR MOTION", "JOINT"),
    *("CONNECTOR CONSTITUTIVE REFERENCE", "COHESIVE SECTION", "GASKET SECTION", "GAP", "RELEASE"),
    *("GASKET BEHAVIOR", "GASKET THICKNESS BEHAVIOR", "GASKET ELASTICITY", "TRANSVERSE SHEAR"),
    *("KINEMATIC", "DISTRIBUTING", "SURFACE INTERACTION", "SURFACE BEHAVIOR", "FRICTION"),
    *("CONTACT INCLUSIONS", "CONTACT EXCLUSIONS", "CONTACT PROPERTY ASSIGNMENT", "HOURGLASS"),
    *("CONTACT INITIALIZATION ASSIGNMENT", "CONTACT INITIALIZATION DATA", "CONTACT DAMPING"),
    *("CONTACT FORMULATION", "CONTACT CONTROLS", "CONTACT CONTROLS ASSIGNMENT", "COHESIVE"),
    *("CONTACT STABILIZATION", "CONTACT INTERFERENCE", "CONTACT FILE", "CONTACT PRINT"),
    *("SURFACE PROPERTY ASSIGNMENT", "SURFACE SMOOTHING", "GAP CONDUCTANCE"),
    *("SECTION CONTROLS", "HOURGLASS STIFFNESS", "IMPERFECTION", "NORMAL", "NODAL THICKNESS"),
    *("INTEGRATED OUTPUT SECTION", "FILTER", "TIME POINTS", "TRACER PARTICLE"),
    *("NODE FILE", "NODE PRINT", "NODE OUTPUT", "EL FILE", "EL PRINT", "ELEMENT OUTPUT"),
    *("OUTPUT", "NODE RESPONSE", "ELEMENT RESPONSE", "MONITOR", "PRINT", "FILE FORMAT"),
    *("SECTION PRINT", "SECTION FILE", "FILE OUTPUT", "MODEL CHANGE", "CONTROLS"),
    *("FREQUENCY", "STATIC", "DYNAMIC", "SOLUTION TECHNIQUE", "RADIATE", "FILM", "DFLUX"),
    *("CFLUX", "DENSITY", "USER DEFINED FIELD", "VALUES AT INFINITY", "CORRELATION"),
    *("UEL PROPERTY", "MATRIX ASSEMBLE", "MATRIX OUTPUT", "FIELD", "NO RUN"),
    *("PARAMETER DEPENDENCE", "PARAMETER SHAPE VARIATION", "DAMPING", "GLOBAL DAMPING"),
    *("MODAL DAMPING", "SELECT CYCLIC SYMMETRY MODES", "RIGID SURFACE", "ACOUSTIC WAVE"),
    *("SUBSTRUCTURE PATH", "SUBSTRUCTURE GENERATE", "RETAINED NODAL DOFS", "MASS FLOW RATE"),
    *("RETAINED DEGREES OF FREEDOM", "SUBSTRUCTURE MATRIX OUTPUT", "MASS ADJUST", "INERTIA RELIEF"),
    *("NODAL ENERGY RATE", "INITIAL STRAIN INCREASE", "PERIODIC MEDIA"),
}
"""Keywords of Abaqus and CalculiX that are read, or that do not change a flexible body."""

_NASTRAN = {
    **dict.fromkeys(("CONM1", "CONM2", "CMASS1", "CMASS2", "CMASS3", "CMASS4"), _MASSES),
    **dict.fromkeys(("CELAS1", "CELAS2", "CELAS3", "CELAS4", "CBUSH", "CBUSH1D"), _SPRINGS),
    **dict.fromkeys(("CBUSH2D", "CDAMP1", "CDAMP2", "CDAMP3", "CDAMP4", "CDAMP5"), _SPRINGS),
    **dict.fromkeys(("CVISC", "GENEL"), _SPRINGS),
    **dict.fromkeys(("CBAR", "CBEAM", "CBEAM3", "CBEND", "CROD", "CONROD", "CTUBE"), _BEAMS),
    **dict.fromkeys(("CSHEAR", "CQUADX", "CTRIAX", "CTRIAX6", "CQUAD", "CRAC2D"), _SHELLS),
    **dict.fromkeys(("RBAR", "RBAR1", "RBE1", "RROD", "RSPLINE", "RSSCON", "RTRPLT"), _RIGID),
    **dict.fromkeys(("RTRPLT1", "RJOINT", "MPC"), _RIGID),
    **dict.fromkeys(("CGAP", "CFAST", "CWELD", "CSEAM", "CINTC"), _CONNECTORS),
    **dict.fromkeys(("DMIG", "DMI", "DMIJ", "DMIK", "DTI"), _MATRICES),
    **dict.fromkeys(("FORCE", "FORCE1", "FORCE2", "MOMENT", "MOMENT1", "MOMENT2"), _LOADS),
    **dict.fromkeys(("PLOAD", "PLOAD1", "PLOAD2", "PLOAD4", "GRAV", "ACCEL", "TEMP"), _LOADS),
    **dict.fromkeys(("ACCEL1", "RFORCE", "TEMPD", "SPCD", "DAREA", "SLOAD"), _LOADS),
    **dict.fromkeys(("BCTSET", "BCONP", "BSURF", "BSURFS", "BCTADD"), _CONTACT),
    **dict.fromkeys(("SUPORT", "SUPORT1"), _SUPPORTS),
}
"""Kinds by cards of Nastran."""

_NASTRAN_READ = {
    *("GRID", "CTETRA", "CHEXA", "CPENTA", "CPYRAM", "CTRIA3", "CTRIA6", "CQUAD4", "CQUAD8"),
    *("PSOLID", "PSHELL", "MAT1", "MATT1", "SET1", "SPC", "SPC1", "ASET1", "RBE2", "RBE3"),
    *("CORD1R", "CORD2R", "CORD1C", "CORD2C", "PARAM", "INCLUDE", *_NASTRAN),
}

_ANSYS = {
    **dict.fromkeys((21,), _MASSES),
    **dict.fromkeys((14, 39, 40, 214), _SPRINGS),
    **dict.fromkeys((1, 3, 4, 8, 10, 16, 18, 20, 23, 24, 44, 54, 59, 180, 188, 189), _BEAMS),
    **dict.fromkeys((288, 289, 290), _BEAMS),
    **dict.fromkeys((28, 41, 43, 63, 93, 181, 208, 209, 281), _SHELLS),
    **dict.fromkeys((7, 12, 37, 38, 52, 179), _CONNECTORS),
    **dict.fromkeys((184,), _RIGID),
    **dict.fromkeys((27, 50), _MATRICES),
    **dict.fromkeys((153, 154, 156, 159), "surface effects"),
    **dict.fromkeys(range(169, 179), _CONTACT),
}
"""Kinds by the numbers of types of elements of Ansys."""


_ANSYS_READ = ("MPDATA", "NBLOCK", "EBLOCK", "CMBLOCK", "ETBLOCK")
_ANSYS_COMMANDS = {
    *(*_ANSYS_READ, "MPTEMP", "RLBLOCK", "SECBLOCK", "DBLOCK", "FBLOCK", "SFEBLOCK", "BFBLOCK"),
    *("SFBLOCK", "BFEBLOCK", "ESBLOCK", "TBDATA", "MPDELE", "BLOCK", "CEBLOCK", "CPBLOCK"),
}


def abaqus_element(kind: str) -> str | None:
    """Return the kind of elements of a type of Abaqus, or None if they may only name facets."""
    if _ABAQUS_FACETS.match(kind):
        return None
    matches = (name for start, name in _ABAQUS_ELEMENTS.items() if re.match(start, kind))
    return next(matches, "elements of other types")


def ansys_element(number: int) -> str | None:
    """Return the kind of elements of a type of Ansys, or None if they may be solids."""
    return _ANSYS.get(number)


def nastran_card(name: str) -> str | None:
    """Return the kind of the contents of a Nastran card that are left out, or None."""
    return _NASTRAN.get(name)


def similar_command(name: str) -> str:
    """Return the command of Ansys that is read and resembles an unknown name, or ""."""
    return "" if name in _ANSYS_COMMANDS else _similar(name, _ANSYS_READ)


def similar_card(name: str) -> str:
    """Return the card of Nastran that is read and resembles a name, or ""."""
    return _similar(name, _NASTRAN_READ)


def _similar(word: str, words: Collection[str]) -> str:
    """Return the word of `words` that resembles a word most, or ""."""
    return next(iter(difflib.get_close_matches(word, sorted(words), 1, 0.8)), "")


class LeftOut:
    """Collected contents of a deck that are left out, and lines that are not understood."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._unknown: list[str] = []

    def add(self, kind: str | None, word: str, count: int = 1) -> None:
        """Add `count` entries of a kind with their name in the deck; None adds nothing."""
        if kind and count:
            self._counts.setdefault(kind, Counter())[word] += count

    def add_keyword(
        self, keyword: str, line: str, others: Collection[str], *, in_step: bool
    ) -> None:
        """Add a keyword of Abaqus if its contents are left out, or if it is unknown.

        In a step, a keyword is unknown only if it resembles one that is known.

        Args:
            keyword: The keyword in capitals without the star.
            line: Its line.
            others: Known keywords of materials.
            in_step: Whether it is in a step.
        """
        self.add(_ABAQUS.get(keyword), f"*{keyword}")
        if keyword in _ABAQUS or keyword in _HARMLESS or keyword in others:
            return
        other = _similar(keyword, {*_ABAQUS, *_HARMLESS, *others})
        if other or not in_step:
            self.add_unknown(line, f"*{other}" if other else "")

    def add_unknown(self, line: str, other: str = "") -> None:
        """Add a line with an unknown word, and the word which is perhaps meant."""
        self._unknown.append(f"'{line.strip()}'" + (f" (is it {other}?)" if other else ""))

    def remarks(self) -> list[str]:
        """Return a text on what is left out and one on unknown lines, if there are any."""
        result = []
        if self._counts:
            kinds = (
                f"{kind} ({', '.join(f'{n} {word}' for word, n in sorted(words.items()))})"
                for kind, words in self._counts.items()
            )
            result.append(
                f"the body has only the solids; left out are {', '.join(kinds)}. Add what the "
                "motion needs to the model, for example a rigid body fixed to an interface"
            )
        return result + self.unknown()

    def unknown(self) -> list[str]:
        """Return a text on unknown lines, if there are any."""
        if not self._unknown:
            return []
        more = len(self._unknown) - _SHOWN
        lines = ", ".join(self._unknown[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return [
            f"these lines are unknown and are ignored with their data: {lines}; check the spelling"
        ]
