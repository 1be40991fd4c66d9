"""Model files: mechanisms and analyses in YAML, TOML or JSON, without a script."""

from dolfinx_mbd.io.models.documents import ModelFileError
from dolfinx_mbd.io.models.functions import ExpressionMotion, Formula, TableMotion, VectorFormula
from dolfinx_mbd.io.models.reader import Model, read_model
from dolfinx_mbd.io.models.schema import schema
from dolfinx_mbd.io.models.writer import write_model

__all__ = [
    "ExpressionMotion",
    "Formula",
    "Model",
    "ModelFileError",
    "TableMotion",
    "VectorFormula",
    "read_model",
    "schema",
    "write_model",
]
