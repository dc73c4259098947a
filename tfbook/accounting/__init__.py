"""What a Transformer costs, by arithmetic alone. Standard library only: no torch, no numpy."""

from tfbook.accounting.account import Account
from tfbook.accounting.parameters import attention_parameters, count_parameters
from tfbook.accounting.shapes import ShapeRow, attention_shapes

__all__ = ["Account", "ShapeRow", "attention_parameters", "attention_shapes", "count_parameters"]
