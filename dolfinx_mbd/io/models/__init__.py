"""Model files: mechanisms and analyses in YAML, TOML or JSON, without a script."""

from dolfinx_mbd.io.models.documents import ModelFileError
from dolfinx_mbd.io.models.reader import Model, read_model
from dolfinx_mbd.io.models.schema import schema
from dolfinx_mbd.io.models.writer import write_model
from dolfinx_mbd.mechanism.expressions import (
    ExpressionMotion,
    Formula,
    PairFormula,
    StateFormula,
    TableMotion,
    VectorFormula,
)

__all__ = [
    "ExpressionMotion",
    "Formula",
    "Model",
    "ModelFileError",
    "PairFormula",
    "StateFormula",
    "TableMotion",
    "VectorFormula",
    "read_model",
    "schema",
    "write_model",
]
