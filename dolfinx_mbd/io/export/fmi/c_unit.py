"""Functional mock-up units in C: sources, description, binary and archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, tostring

from dolfinx_mbd.checks import reject
from dolfinx_mbd.io.export.fmi.compilation import (
    archive,
    compiled_library,
    identifier_of,
    platform_folder,
)
from dolfinx_mbd.io.export.fmi.names import variable_names, write_unit
from dolfinx_mbd.io.export.fmi.variable_units import add_units

__all__ = ["CUnit", "Variables"]

_COMMON_SOURCES = "unit.c", "fmi.c"


@dataclass(frozen=True)
class Variables:
    """Inputs and outputs of a unit.

    Attributes:
        inputs: Start values of the inputs by name.
        outputs: Names of the outputs.
        units: Units of the variables by name; empty if they are unknown.
        dependencies: Names of the inputs on which an output depends without a step between, by the
            name of the output; None if the output may depend on every input.
    """

    inputs: Mapping[str, float]
    outputs: Sequence[str]
    units: Mapping[str, str] = field(default_factory=dict)
    dependencies: Mapping[str, Sequence[str]] | None = None

    def __post_init__(self) -> None:
        if "time" in variable_names(self.names):
            reject("name of an input or output", "time", "another name: it is that of the time")

    @cached_property
    def names(self) -> list[str]:
        """Names in the order of the value references."""
        return [*self.inputs, *self.outputs]


@dataclass(frozen=True)
class CUnit:
    """A functional mock-up unit in C for co-simulation.

    Attributes:
        path: File to write; its stem is the name of the model.
        sources: Texts of `model.c`, which includes `unit.c`, of `data.h`, which model.c includes,
            and of other sources by name.
        variables: Inputs and outputs.
        dt: Step, s.
        fmi: Version of the standard.
    """

    path: Path
    sources: Mapping[str, str]
    variables: Variables
    dt: float
    fmi: Literal[2, 3]

    def write(self, *, binary: bool, overwrite: bool) -> Path:
        """Compile the sources if `binary` is true, write the file, and return its path."""
        name, sources = self.path.stem, self._all_sources
        contents = {f"sources/{file}": text.encode() for file, text in sources.items()}
        contents["modelDescription.xml"] = self._description()
        if self.fmi == 3:
            contents["sources/buildDescription.xml"] = self._build_description()
        if binary:
            folder, suffix = platform_folder(self.fmi)
            contents[f"binaries/{folder}/{name}{suffix}"] = compiled_library(self._main, sources)
        return write_unit(self.path, archive(contents), overwrite)

    @property
    def _main(self) -> str:
        """Return the name of the main source."""
        return f"fmi{self.fmi}.c"

    @cached_property
    def _identifier(self) -> str:
        """Return the identifier of the unit, which depends on its contents."""
        data = f"{self.dt!r}", self.path.stem, *self.variables.names
        return identifier_of(*self.sources.values(), *self._common.values(), *data)

    @cached_property
    def _common(self) -> dict[str, str]:
        """Return the texts of the sources that do not depend on the model, by name."""
        folder = files("dolfinx_mbd.io.export.fmi")
        names = (*_COMMON_SOURCES, self._main)
        return {name: (folder / name).read_text(encoding="utf-8") for name in names}

    @property
    def _all_sources(self) -> dict[str, str]:
        """Return the texts of all sources, with the constants of the unit in `data.h`."""
        definitions = f'#define IDENTIFIER "{self._identifier}"\n#define DT {self.dt!r}\n'
        data = {"data.h": definitions + self.sources["data.h"]}
        return {**self._common, **self.sources, **data}

    def _description(self) -> bytes:
        """Return the file `modelDescription.xml`."""
        variables, fmi = self.variables, self.fmi
        identifier = {"guid" if fmi == 2 else "instantiationToken": self._identifier}
        root = Element(
            "fmiModelDescription",
            identifier,
            fmiVersion=f"{fmi}.0",
            modelName=self.path.stem,
            generationTool="dolfinx_mbd",
            variableNamingConvention="structured",
        )
        self._add_options(SubElement(root, "CoSimulation", modelIdentifier=self.path.stem))
        SubElement(root, "DefaultExperiment", stepSize=repr(self.dt))
        element = SubElement(root, "ModelVariables")
        for k, (name, start) in enumerate(variables.inputs.items()):
            self._add_variable(element, name, k, "input", {"start": repr(float(start))})
        for k, name in enumerate(variables.outputs, len(variables.inputs)):
            self._add_variable(element, name, k, "output", {})
        self._add_variable(element, "time", len(variables.names), "independent", {})
        root.append(self._structure())
        if variables.units:
            add_units(root, {**variables.units, "time": "s"})
        return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)

    def _add_options(self, unit: Element) -> None:
        """Add the capabilities of the unit."""
        state = "FMUstate" if self.fmi == 2 else "FMUState"
        options = "canHandleVariableCommunicationStepSize", f"canGetAndSet{state}"
        for option in (*options, f"canSerialize{state}"):
            unit.set(option, "true")
        if self.fmi == 2:
            unit.set("canNotUseMemoryManagementFunctions", "true")
            SubElement(SubElement(unit, "SourceFiles"), "File", name=self._main)
        else:
            unit.set("fixedInternalStepSize", repr(self.dt))

    def _add_variable(
        self, parent: Element, name: str, place: int, causality: str, start: dict[str, str]
    ) -> None:
        """Add a variable to the description; `place` is its value reference."""
        attributes = {"name": name, "valueReference": str(place), "causality": causality}
        attributes["variability"] = "continuous"
        if self.fmi == 2:
            SubElement(SubElement(parent, "ScalarVariable", attributes), "Real", start)
        else:
            SubElement(parent, "Float64", attributes | start)

    def _structure(self) -> Element:
        """Return the outputs, their initial values and their dependencies on inputs."""
        variables, structure = self.variables, Element("ModelStructure")
        if not variables.outputs:
            return structure
        outputs, initial = structure, structure
        if self.fmi == 2:
            outputs = SubElement(structure, "Outputs")
            initial = SubElement(structure, "InitialUnknowns")
        tags = ("Unknown", "Unknown") if self.fmi == 2 else ("Output", "InitialUnknown")
        for parent, tag in zip((outputs, initial), tags, strict=True):
            for name in variables.outputs:
                attributes = {self._reference: self._place(name)}
                if variables.dependencies is not None:
                    places = map(self._place, variables.dependencies[name])
                    attributes["dependencies"] = " ".join(places)
                SubElement(parent, tag, attributes)
        return structure

    @property
    def _reference(self) -> str:
        """Return the name of the attribute that refers to a variable."""
        return "index" if self.fmi == 2 else "valueReference"

    def _place(self, name: str) -> str:
        """Return the index of a variable (FMI 2, from 1) or its value reference (from 0)."""
        return str(self.variables.names.index(name) + (self.fmi == 2))

    def _build_description(self) -> bytes:
        """Return the file `buildDescription.xml` of FMI 3.0."""
        root = Element("fmiBuildDescription", fmiVersion="3.0")
        build = SubElement(root, "BuildConfiguration", modelIdentifier=self.path.stem)
        file_set = SubElement(build, "SourceFileSet", language="C99")
        SubElement(file_set, "SourceFile", name=self._main)
        return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root)
