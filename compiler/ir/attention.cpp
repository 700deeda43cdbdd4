// Attention operators -> hstu.attention and the functions of the mask.
#include "compiler/ir/attention.h"

#include <fmt/format.h>

#include "compiler/ir/hstu.h"
#include "compiler/ir/mask_functions.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/region_functions.h"
#include "compiler/spec/operators/hstu_attention/bound_mask.h"
#include "compiler/spec/operators/hstu_attention/dropout.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/operators/hstu_attention/shared_value.h"

namespace hstujit {

namespace {

// score_value and score_of_value, beside a score whose arguments are `of_score`.
void build_split_score(mlir::ModuleOp module, const SplitScore& split, const ScoreArguments& of_score,
                       llvm::ArrayRef<llvm::StringRef> scalars) {
  mlir::OpBuilder builder(module.getContext());
  const mlir::Location location = builder.getUnknownLoc();
  const auto build = [&](llvm::StringRef name, const Expression& expression, bool takes_value) {
    llvm::SmallVector<llvm::StringRef> names = {"x", "row", "col", "n", kTargetsArgument, "head"};
    llvm::SmallVector<mlir::Type> types = {builder.getF32Type()};
    types.append(names.size() - 1, builder.getIndexType());
    llvm::append_range(names, scalars);
    if (takes_value) names.push_back(kSharedValue);
    types.append(names.size() - types.size(), builder.getF32Type());
    builder.setInsertionPointToEnd(module.getBody());
    auto function = create_region_function(builder, location, name,
                                           builder.getFunctionType(types, builder.getF32Type()), names, {"y"});
    mlir::Block* const body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    ScoreArguments arguments = of_score;
    const auto argument = [&](unsigned i) -> mlir::Value { return body->getArgument(i); };
    arguments.x = argument(0), arguments.row = argument(1), arguments.col = argument(2), arguments.n = argument(3);
    arguments.t = argument(4), arguments.head = argument(5);
    for (unsigned i = hstu::AttentionOp::kFirstScalar; i < names.size(); ++i)
      arguments.scalars[names[i].str()] = argument(i);
    Ops ops(builder, location);
    mlir::func::ReturnOp::create(builder, location, build_score(ops, expression, of_score.heads, arguments));
  };
  build(kScoreValue, split.value, false);
  build(kScoreOfValue, split.rest, true);
}

}  // namespace

Result<Module> build_attention(mlir::MLIRContext& context, const AttentionSpec& spec, const ScoreBuilder& given) {
  const HstuAttentionParams& params = spec.params();
  mlir::OpBuilder builder(&context);
  const mlir::Location location = builder.getUnknownLoc();
  Module module(mlir::ModuleOp::create(location));
  builder.setInsertionPointToEnd(module->getBody());
  Ops ops(builder, location);
  // Intervals that launches give have functions of their own (templates/attention/operands/intervals.cuh).
  if (!params.has_intervals()) {
    const std::optional<ReadingMask> reading = reading_mask_of(params);
    build_mask_functions(builder, location, kernel_mask(params), spec.takes_counts(), spec.operands(),
                         reading ? &*reading : nullptr);
  }

  // Both directions have the same.
  mlir::SmallVector<mlir::StringRef> scalars;
  const Signature signature = spec.signature(Direction::kForward);
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kFloat && argument.name != kDropoutRatio) scalars.push_back(argument.name);
  }
  auto attention = hstu::AttentionOp::create(builder, location, builder.getStrArrayAttr(scalars));

  const mlir::Type index = builder.getIndexType(), real = builder.getF32Type();
  mlir::SmallVector<mlir::Type> types = {real, index, index, index, index, index};
  types.append(scalars.size(), real);
  mlir::Block* score = builder.createBlock(&attention.getScoreRegion(), {}, types,
                                           mlir::SmallVector<mlir::Location>(types.size(), location));
  const auto argument = [&](unsigned i) { return score->getArgument(i); };
  ScoreArguments arguments = {argument(0), argument(1),  argument(2), argument(3), argument(4),
                              argument(5), params.heads, {},          {}};
  for (unsigned i = 0; i < scalars.size(); ++i)
    arguments.scalars[scalars[i].str()] = argument(hstu::AttentionOp::kFirstScalar + i);
  for (const Operand& operand : spec.operands()) {
    if (operand.use == OperandUse::kScore) arguments.operands.emplace(operand.name, operand);
  }
  const auto yield = [&](mlir::Value y) { hstu::YieldOp::create(builder, location, y); };
  if (given) {
    yield(given(ops, arguments));
    return module;
  }
  const Result<Expression> expression = parse_score(params);
  if (!expression.ok()) {
    return Status(Code::kUnsupported,
                  fmt::format("score {} has no IR: {}", params.score, expression.status().message()));
  }
  yield(build_score(ops, *expression, params.heads, arguments));
  if (const std::optional<SplitScore> split = split_score(*expression, spec.operands()))
    build_split_score(*module, *split, arguments, scalars);
  return module;
}

}  // namespace hstujit
