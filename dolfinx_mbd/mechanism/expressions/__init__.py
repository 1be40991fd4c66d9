"""Functions given by expressions and tables, for loads, drivers and model files.

`PairFormula` is the law of a load between two frames, and `StateFormula` the value of a load with
states. Loads and drivers accept a text in place of a Python function:

    >>> import dolfinx_mbd as mbd
    >>> motor = mbd.JointLoad("motor", "hinge", "rotation", "8*(20 - rate)")
    >>> motor.magnitude(t=0.0, s=0.0, rate=5.0)
    120.0
"""

from dolfinx_mbd.mechanism.expressions.functions import (
    ExpressionMotion,
    Formula,
    TableMotion,
    VectorFormula,
)
from dolfinx_mbd.mechanism.expressions.laws import PairFormula, StateFormula

__all__ = [
    "ExpressionMotion",
    "Formula",
    "PairFormula",
    "StateFormula",
    "TableMotion",
    "VectorFormula",
]
