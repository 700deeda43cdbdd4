// The hstu dialect: what an operator means, independent of how a device computes it.
#ifndef HSTUJIT_COMPILER_IR_HSTU_TD
#define HSTUJIT_COMPILER_IR_HSTU_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Hstu_Dialect : Dialect {
  let name = "hstu";
  let cppNamespace = "::hstujit::hstu";
  let summary = "operators of generative recommenders, each with its pointwise regions";
  let useDefaultAttributePrinterParser = 1;
}

class Hstu_Op<string mnemonic, list<Trait> traits = []> : Op<Hstu_Dialect, mnemonic, traits>;

def Hstu_AttentionOp : Hstu_Op<"attention", [IsolatedFromAbove]> {
  let summary = "jagged attention with a pointwise score instead of softmax";
  let description = [{
    `score` takes (x, row, column, n, t, head, scalars...) and yields the weight of the pair: x is the raw dot product,
    positions are those in a sequence of n rows whose last t are targets, and `scalars` names arguments of the launch,
    such as alpha. The module has the functions of the mask beside the operator (compiler/ir/mask_functions.h).
    A score reads the operands of the instance by `hstu.read`.
    What a score yields must be finite at every position, those before and behind the sequence included: kernels
    evaluate it there and multiply by zero. Its derivatives are taken with respect to x, and to the operands that are read
    `differentiable`.
  }];
  let arguments = (ins StrArrayAttr:$scalars);
  let regions = (region SizedRegion<1>:$score_region);
  let assemblyFormat = "$scalars `score` $score_region attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned kFirstScalar = 6;  // among the arguments of score
  }];
}

// Kinds of operands of hstu.row. An output is a row or a sum, an input anything but a sum. Rows are those gone through,
// or found by the operator's index.
def Hstu_OperandKind : I32EnumAttr<"OperandKind", "what an operand is to a row", [
    I32EnumAttrCase<"Row", 0, "row">,              // (L, width): each row has its own
    I32EnumAttrCase<"Vector", 1, "vector">,        // (width): all rows have the same
    I32EnumAttrCase<"Scalar", 2, "scalar">,        // an argument of the launch
    I32EnumAttrCase<"ColumnSum", 3, "column_sum">, // (width): the sum over all rows
    I32EnumAttrCase<"GroupVector", 4, "group_vector">,  // (groups): all rows have the same, one number for a group
    I32EnumAttrCase<"GroupSum", 5, "group_sum">,   // (groups): the sum over all rows and the elements of a group
    I32EnumAttrCase<"Seed", 6, "seed">,            // an integer argument of the launch, or the element of a tensor (1)
    I32EnumAttrCase<"Table", 7, "table">,          // (K, width): of its rows the one that is found
    I32EnumAttrCase<"TableSum", 8, "table_sum">    // (K, width): each row is the sum over the rows that found it
  ]> {
  let cppNamespace = "::hstujit::hstu";
  let genSpecializedAttr = 0;
}

def Hstu_ColumnsAttr : AttrDef<Hstu_Dialect, "Columns"> {
  let summary = "columns of a tensor that several operands share, from one on";
  let mnemonic = "columns";
  let parameters = (ins StringRefParameter<"of the launch's argument">:$tensor, "int64_t":$first);
  let assemblyFormat = "`<` $tensor `from` $first `>`";
}

def Hstu_OperandAttr : AttrDef<Hstu_Dialect, "Operand"> {
  let summary = "an operand of hstu.row: its name, what it is to a row, its type in memory, and where that is";
  let mnemonic = "operand";
  let parameters = (ins StringRefParameter<"of the launch's argument, unless it is columns of one">:$name,
                        EnumParameter<Hstu_OperandKind>:$kind,
                        "::mlir::Type":$dtype,
                        OptionalParameter<"::hstujit::hstu::ColumnsAttr">:$columns);
  let assemblyFormat = "`<` $name `,` $kind `,` $dtype (`,` $columns^)? `>`";
}

def Hstu_OperandsAttr : TypedArrayAttrBase<Hstu_OperandAttr, "operands of hstu.row">;

// The elements of a row, or what stands for each of them, in the arithmetic of the operator.
def Hstu_Elements : VectorOfRankAndType<[1], [F32]>;

def Hstu_RowOp : Hstu_Op<"row", [IsolatedFromAbove]> {
  let summary = "an operator that computes each row of `width` elements from that row alone";
  let description = [{
    `body` takes a value for each input: in fp32 `width` elements of a row or of a vector, or a scalar; a seed as i64. It
    yields `width` elements for each output: those of a row, or what the row adds to the sums. It consists of
    elementwise arith and math operations, `hstu.reduce`, `hstu.splat`, `hstu.center`, `hstu.random` and `hstu.round`.
    Values are rounded to an output's type when they are stored, and before that only by `hstu.round`; sums over rows
    are sums of fp32.

    `groups`, 1 where it is not there, cuts a row into groups of neighbouring elements. A number of the row is then one
    for each group: what is reduced are the elements of a group, and each element sees the number of its own.

    Where rows are those of sequences, `index` takes (sequence, position in it) of the row that is gone through, and
    yields for each operand of `found` which of its tensor's rows it is. A row that the tensor does not have is read as
    -0, which adds nothing, unless the operand says otherwise, and is not written. `constant` names inputs whose
    gradient is not asked for. The rows of the input `residual` also go around the operator: the gradient that they
    have there is an input of the gradient, `dresidual`.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$width,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$groups, Hstu_OperandsAttr:$inputs,
                       Hstu_OperandsAttr:$outputs, OptionalAttr<StrArrayAttr>:$constant,
                       OptionalAttr<StrAttr>:$residual, OptionalAttr<StrArrayAttr>:$found);
  let regions = (region SizedRegion<1>:$body, AnyRegion:$index);
  let assemblyFormat = [{
    $width (`groups` $groups^)? $inputs `->` $outputs $body (`constant` $constant^)? (`residual` $residual^)?
    (`found` $found^ $index)? attr-dict
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    int64_t group_width() { return static_cast<int64_t>(getWidth() / getGroups().value_or(1)); }
  }];
}

def Hstu_ReduceOp : Hstu_Op<"reduce", [Pure]> {
  let summary = "the sum over a row's elements, or a group's, in an order that does not depend on the launch";
  let arguments = (ins Hstu_Elements:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$value `:` type($value) attr-dict";
  let hasCanonicalizer = 1;
}

def Hstu_SplatOp : Hstu_Op<"splat", [Pure]> {
  let summary = "a number of the row, for each of its elements";
  let arguments = (ins F32:$value);
  let results = (outs Hstu_Elements:$result);
  let assemblyFormat = "$value `:` type($result) attr-dict";
  let hasCanonicalizer = 1;
}

def Hstu_CenterOp : Hstu_Op<"center", [Pure, SameOperandsAndResultType]> {
  let summary = "elements less the mean of the row's, or the group's, which add up to 0";
  let description = [{
    The rounding of a sum of large elements is more than elements differ by. So hstu-expand-centers subtracts the mean
    of what differs from a first mean, too, and elements that are all the same become 0.
  }];
  let arguments = (ins Hstu_Elements:$value);
  let results = (outs Hstu_Elements:$result);
  let assemblyFormat = "$value `:` type($value) attr-dict";
}

def Hstu_RandomOp : Hstu_Op<"random", [Pure]> {
  let summary = "a number from 128 to below 129 for each element, which follows from (seed, offset, element) alone";
  let description = [{
    Element row * `columns` + `first` + column of a matrix that has `columns` elements a row. Philox4x32-7 with `seed` as
    its key takes (element / 8, offset) as its counter, two words each, the lower ones first. Of the four words that it
    gives, 16 bits each of eight numbers, the lower ones of a word first, the result is 128 and number element % 8 over
    2^16: the fp32 number whose mantissa those bits are, which whoever compares it need not bring to 0.
  }];
  let arguments = (ins I64:$seed, I64:$offset, ConfinedAttr<I64Attr, [IntPositive]>:$columns,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$first);
  let results = (outs Hstu_Elements:$result);
  let assemblyFormat = "$seed `,` $offset `columns` $columns `from` $first `:` type($result) attr-dict";
}

def Hstu_RoundOp : Hstu_Op<"round", [Pure, SameOperandsAndResultType]> {
  let summary = "elements that are rounded to nearest to a 16-bit type, in fp32; the derivative is 1";
  let arguments = (ins AnyTypeOf<[F32, Hstu_Elements]>:$value, TypeAttrOf<AnyTypeOf<[F16, BF16]>>:$dtype);
  let results = (outs AnyTypeOf<[F32, Hstu_Elements]>:$result);
  let assemblyFormat = "$value `to` $dtype `:` type($value) attr-dict";
}

def Hstu_GemmOp : Hstu_Op<"gemm", [IsolatedFromAbove]> {
  let summary = "a product of two matrices, with an epilogue";
  let description = [{
    `epilogue` takes an element of the product in fp32, its column with `takes_column`, then a value of each of `inputs`:
    of its column, of the element itself, or an argument of the launch. It yields the element of the result, which is
    rounded once, when it is stored.
    Extents and layouts of the matrices are no part of what the epilogue says.
  }];
  let arguments = (ins StrArrayAttr:$inputs, UnitAttr:$takes_column);
  let regions = (region SizedRegion<1>:$epilogue);
  let assemblyFormat = "$inputs `epilogue` $epilogue attr-dict";
  let hasRegionVerifier = 1;
}

def Hstu_ReadOp : Hstu_Op<"read", [Pure]> {
  let summary = "an element of an operand of attention";
  let description = [{
    Of the kind `row` the element of the row at `position` of the pair's sequence; a position outside of the sequence
    reads 0. Of the kind `table` the entry `position`, or the nearest of its `entries`. Of the kinds `head` and `scalar`
    the element at `position`, the pair's head or 0; of the kinds `sequence` and `pair` that of the pair's sequence, or
    of the pair, 0 outside of the sequence. Where the operand has an axis of heads beside that (`by_head`), the
    element is that of the pair's head, which `group` heads in a row have in common. Reals of the type `dtype` are read
    as fp32, integers as i64. The gradient of an operand that is read `differentiable` is a sum over the pairs that read
    an element; of the kind `row`, `position` is then the row or the column of the pair.
  }];
  let arguments = (ins StrAttr:$operand, StrAttr:$kind, Index:$position, TypeAttr:$dtype, UnitAttr:$by_head,
                       I64Attr:$group, I64Attr:$entries, UnitAttr:$differentiable);
  let results = (outs AnyTypeOf<[F32, I64]>:$value);
  let assemblyFormat = [{
    $operand `:` $kind `[` $position `]` `of` $dtype (`by_head` $by_head^)? `group` $group `entries` $entries
    (`differentiable` $differentiable^)? `:` type($value) attr-dict
  }];
  let extraClassDeclaration = [{
    // Compares the kind with a name.
    bool is_of(std::string_view kind) { return std::string_view(getKind()) == kind; }
  }];
}

// Reads an element of a tensor of the launch, for an index. Tensors and arguments are those of the launch, by name.
def Hstu_ElementOp : Hstu_Op<"element", [Pure]> {
  let summary = "an element of a tensor of integers; of an index that it does not have, that of the nearest";
  let arguments = (ins StrAttr:$tensor, Index:$index);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `[` $index `]` attr-dict";
}

def Hstu_ExtentOp : Hstu_Op<"extent", [Pure]> {
  let summary = "how many rows the tensor of an operand has";
  let arguments = (ins StrAttr:$operand);
  let results = (outs Index:$result);
  let assemblyFormat = "$operand attr-dict";
}

def Hstu_ArgumentOp : Hstu_Op<"argument", [Pure]> {
  let summary = "an integer or real argument";
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[Index, F32]>:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
}

def Hstu_BitsFromOp : Hstu_Op<"bits_from", [Pure]> {
  let summary = "32 bits, of which those from number `first` on are set: all where it is not positive, none from 32 on";
  let arguments = (ins Index:$first);
  let results = (outs I32:$result);
  let assemblyFormat = "$first attr-dict";
}

def Hstu_YieldOp : Hstu_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the values of a region";
  let arguments = (ins Variadic<AnyTypeOf<[I1, F32, Index, Hstu_Elements]>>:$values);
  let assemblyFormat = "$values `:` type($values) attr-dict";
}

#endif  // HSTUJIT_COMPILER_IR_HSTU_TD
