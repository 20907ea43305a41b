"""Vectors of float32 for compiled loops: what a processor computes with, by name.

The compiler finds vectors by itself in a simple loop over an array. It does not find how to keep a block of sums in
registers while it walks through weights, which is what makes a convolution fast; here one says so. A vector is a local
variable of a compiled function:

    total = zeros_32()
    total = multiply_add(total, weight_vector, number)     # total + weight_vector · number, lane by lane
    store(out, position, positive(total))                  # max(·, 0)

More lanes than a register has are spread over several registers. Products and sums are fused where the processor can
do that (and then everywhere), so results depend on the processor in the last bit, but never on where a pixel lies.

Importing this module imports numba, which takes a while: import it where it is used.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

_FUSED = ("contract", "nsz")


class Vector(types.Type):
    """The numba type of a vector of this many float32."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(name=f"fouriscope.Vector({lanes})")

    @property
    def ir(self) -> ir.VectorType:
        return ir.VectorType(ir.FloatType(), self.lanes)


@register_model(Vector)
class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.ir)


_32, _4 = Vector(32), Vector(4)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, vector: Vector) -> Any:
    """Where the vector begins that a flat array holds from a given position on."""
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
    return builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.ir.as_pointer())


def _loader(vector: Vector) -> Any:
    def load(typing_context: Any, array: Any, position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_pointer(context, builder, signature, arguments, vector), align=4)

        return vector(array, types.intp), generate

    return intrinsic(load)


def _zeros(vector: Vector) -> Any:
    def zeros(typing_context: Any) -> Any:
        return vector(), lambda context, builder, signature, arguments: ir.Constant(vector.ir, [0.0] * vector.lanes)

    return intrinsic(zeros)


load_32, load_4 = _loader(_32), _loader(_4)
zeros_32, zeros_4 = _zeros(_32), _zeros(_4)


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, array: Any, position: Any, vector: Any) -> Any:
    """Write the lanes to a flat array from ``position`` on; nobody checks that they fit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments, signature.args[2])
        builder.store(arguments[2], pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@intrinsic  # type: ignore[untyped-decorator]
def multiply_add(typing_context: Any, total: Any, vector: Any, number: Any) -> Any:
    """Return total + vector · number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, vector, number = arguments
        first = builder.insert_element(ir.Constant(vector.type, ir.Undefined), number, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.type.count), [0] * vector.type.count)
        spread = builder.shuffle_vector(first, ir.Constant(vector.type, ir.Undefined), everywhere)
        return builder.fadd(total, builder.fmul(vector, spread, flags=_FUSED), flags=_FUSED)

    return total(total, vector, types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def positive(typing_context: Any, vector: Any) -> Any:
    """Return max(vector, 0), lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(arguments[0].type, [0.0] * signature.args[0].lanes)
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), arguments[0], zero)

    return vector(vector), generate
