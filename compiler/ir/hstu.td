// The hstu dialect: what an operator means, independent of how a device computes it.
#ifndef HSTUJIT_COMPILER_IR_HSTU_TD
#define HSTUJIT_COMPILER_IR_HSTU_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Hstu_Dialect : Dialect {
  let name = "hstu";
  let cppNamespace = "::hstujit::hstu";
  let summary = "operators of generative recommenders, each with its pointwise regions";
}

class Hstu_Op<string mnemonic, list<Trait> traits = []> : Op<Hstu_Dialect, mnemonic, traits>;

def Hstu_AttentionOp : Hstu_Op<"attention", [IsolatedFromAbove]> {
  let summary = "jagged attention with a pointwise score instead of softmax";
  let description = [{
    `mask` takes (row, column, n, t), the positions in a sequence of n rows whose last t are targets, and yields whether
    the row sees the column. `score` takes (x, alpha), the raw dot product and its factor, and yields the weight.
    The attributes are the fields of HstuAttentionParams; regions read them through `hstu.flag`.
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$heads,
    ConfinedAttr<I64Attr, [IntPositive]>:$attn_dim,
    ConfinedAttr<I64Attr, [IntPositive]>:$hidden_dim,
    StrAttr:$dtype,
    StrAttr:$precision,
    StrAttr:$offsets_dtype,
    ConfinedAttr<I64Attr, [IntPositive]>:$alignment,
    BoolAttr:$causal,
    BoolAttr:$num_targets,
    ConfinedAttr<I64Attr, [IntPositive]>:$target_group_size,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$max_attn_len,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$min_full_attn_seq_len,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$contextual_seq_len,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$sla_k1,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$sla_k2,
    BoolAttr:$full_mask,
    StrAttr:$score);
  let regions = (region SizedRegion<1>:$mask_region, SizedRegion<1>:$score_region);
  let assemblyFormat = "prop-dict `mask` $mask_region `score` $score_region attr-dict";
  let hasRegionVerifier = 1;
}

def Hstu_FlagOp : Hstu_Op<"flag", [Pure]> {
  let summary = "the value of an attribute of the enclosing operator, a constant once hstu-bind-flags has run";
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[Index, I1, F32]>:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
}

def Hstu_YieldOp : Hstu_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the value of a region";
  let arguments = (ins AnyTypeOf<[I1, F32]>:$value);
  let assemblyFormat = "$value `:` type($value) attr-dict";
}

#endif  // HSTUJIT_COMPILER_IR_HSTU_TD
