// Attention operators -> hstu.attention. The mask is one expression over all flags; what an instance does not use folds
// away once the flags are bound.
#include "compiler/ir/attention.h"

#include <fmt/format.h>

#include "compiler/ir/expression.h"
#include "compiler/ir/hstu.h"
#include "compiler/ir/ops.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"

namespace hstujit {

namespace {

using mlir::Value;

mlir::Attribute attribute(mlir::Builder& builder, int64_t value) { return builder.getI64IntegerAttr(value); }
mlir::Attribute attribute(mlir::Builder& builder, bool value) { return builder.getBoolAttr(value); }
mlir::Attribute attribute(mlir::Builder& builder, const std::string& value) { return builder.getStringAttr(value); }
template <typename Enumeration>
mlir::Attribute attribute(mlir::Builder& builder, Enumeration value) {
  return builder.getStringAttr(to_string(value));
}

void yield(Ops& ops, Value value) { hstu::YieldOp::create(ops.builder(), ops.location(), value); }

}  // namespace

Result<Module> build_attention(mlir::MLIRContext& context, const AttentionSpec& spec, const ScoreBuilder& given) {
  const HstuAttentionParams& params = spec.params();
  mlir::OpBuilder builder(&context);
  const mlir::Location location = builder.getUnknownLoc();
  Module module(mlir::ModuleOp::create(location));
  builder.setInsertionPointToEnd(module->getBody());
  Ops ops(builder, location);

  mlir::SmallVector<mlir::NamedAttribute> attributes;
  for_each_field(params, [&](const auto& field, const auto& value) {
    if (field.name == "mask") return;  // it is in the region
    attributes.push_back(builder.getNamedAttr(llvm::StringRef(field.name), attribute(builder, value)));
  });
  // Both directions have the same.
  mlir::SmallVector<mlir::StringRef> scalars;
  const Signature signature = spec.signature(Direction::kForward);
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kFloat) scalars.push_back(argument.name);
  }
  attributes.push_back(builder.getNamedAttr("scalars", builder.getStrArrayAttr(scalars)));
  auto attention = hstu::AttentionOp::create(builder, location, mlir::TypeRange(), mlir::ValueRange(), attributes);

  const mlir::Type index = builder.getIndexType(), real = builder.getF32Type();
  mlir::Block* mask = builder.createBlock(&attention.getMaskRegion(), {}, {index, index, index, index},
                                          mlir::SmallVector<mlir::Location>(4, location));
  yield(ops, build_expression(ops, mask_of(params), [&](const Expression::Symbol& symbol) -> Value {
          constexpr std::string_view kArguments[] = {"row", "column", "n", "t"};
          for (unsigned i = 0; i < std::size(kArguments); ++i) {
            if (symbol.name == kArguments[i]) return mask->getArgument(i);
          }
          const mlir::Type type = symbol.boolean ? mlir::Type(builder.getI1Type()) : index;
          return hstu::FlagOp::create(builder, location, type, symbol.name);
        }));
  mlir::SmallVector<mlir::Type> types = {real, index, index, index, index, index};
  types.append(scalars.size(), real);
  mlir::Block* score = builder.createBlock(&attention.getScoreRegion(), {}, types,
                                           mlir::SmallVector<mlir::Location>(types.size(), location));
  const auto argument = [&](unsigned i) { return score->getArgument(i); };
  ScoreArguments arguments = {argument(0), argument(1), argument(2), argument(3), argument(4), argument(5), {}, {}};
  for (unsigned i = 0; i < scalars.size(); ++i)
    arguments.scalars[scalars[i].str()] = argument(hstu::AttentionOp::kFirstScalar + i);
  for (const Operand& operand : spec.operands()) {
    if (operand.use == OperandUse::kScore) arguments.operands.emplace(operand.name, operand);
  }
  if (given) {
    yield(ops, given(ops, arguments));
    return module;
  }
  const Result<Expression> expression = parse_score(params.score);
  if (!expression.ok()) {
    return Status(Code::kUnsupported,
                  fmt::format("score {} has no IR: {}", params.score, expression.status().message()));
  }
  yield(ops, build_score(ops, *expression, params.heads, arguments));
  return module;
}

}  // namespace hstujit
