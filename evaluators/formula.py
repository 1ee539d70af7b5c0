"""Formulas: arithmetic over named scores, read from text and computed over whole columns."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MAX_FORMULA = 1000  # characters, so that no tree is too deep to walk
_Numbers: TypeAlias = "list[pl.Expr]"

_OPERATORS: dict[type[ast.operator], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: pl.Expr.add,
    ast.Sub: pl.Expr.sub,
    ast.Mult: pl.Expr.mul,
    ast.Div: pl.Expr.truediv,
    ast.Pow: pl.Expr.pow,
}
_OF_ONE: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "abs": pl.Expr.abs,
    "floor": pl.Expr.floor,
    "ceil": pl.Expr.ceil,
    "exp": pl.Expr.exp,
    "sqrt": pl.Expr.sqrt,
    "log": lambda number: number.log(),
}
_OF_MANY: dict[str, Callable[[_Numbers], pl.Expr]] = {"min": pl.min_horizontal, "max": pl.max_horizontal}
FUNCTIONS = (*_OF_MANY, *_OF_ONE)


def parse_formula(text: str, names: Collection[str]) -> pl.Expr:
    """Read a formula: numbers, names, + - * / ^, brackets, min max abs floor ceil exp sqrt log.

    ^ binds strongest and from the right, stronger than a sign before it: -2^2 is -4. `log` is natural.
    What has no value, such as 1/0 or sqrt(-1), is infinite or NaN in that row and in all that is made of it.

    Args:
        text: The formula.
        names: Float64 columns it may name.

    Returns:
        An expression over those columns; a null in one it names makes null, but for min and max.

    Raises:
        ValueError: The text is no such formula; the message says why.
    """
    if len(text) > MAX_FORMULA:
        raise ValueError(f"more than {MAX_FORMULA} characters")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        return _build(tree.body, names)
    except SyntaxError as error:
        raise ValueError(f"{error.msg} at character {error.offset or 1}") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError("nested too deeply") from error


def _build(node: ast.expr, names: Collection[str]) -> pl.Expr:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return pl.lit(_read_number(value), pl.Float64)
        case ast.Name(id=name):
            return _find(name, names)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            number = _build(operand, names)
            return -number if isinstance(node.op, ast.USub) else number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_build(left, names), _build(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _apply(name, [_build(argument, names) for argument in arguments])
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")


def _find(name: str, names: Collection[str]) -> pl.Expr:
    if name not in names:
        raise ValueError(f"unknown name {name!r}; known: {', '.join((*names, *FUNCTIONS))}")
    return pl.col(name)


def _read_number(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _apply(name: str, arguments: _Numbers) -> pl.Expr:
    if name in _OF_ONE:
        if len(arguments) != 1:
            raise ValueError(f"{name} takes one number")
        return _OF_ONE[name](arguments[0])
    if name not in _OF_MANY:
        raise ValueError(f"unknown function {name!r}; known: {', '.join(FUNCTIONS)}")
    if not arguments:
        raise ValueError(f"{name} takes one number or more")
    worthless = pl.any_horizontal([each.is_nan() for each in arguments])
    return pl.when(worthless).then(math.nan).otherwise(_OF_MANY[name](arguments))
