#include "compiler/ir/row_builder.h"

#include <cassert>

#include "compiler/ir/hstu.h"

namespace hstujit {

namespace {

hstu::OperandKind kind_of(RowOperandKind kind) {
  switch (kind) {
    case RowOperandKind::kRow:
      return hstu::OperandKind::Row;
    case RowOperandKind::kVector:
      return hstu::OperandKind::Vector;
    case RowOperandKind::kGroupVector:
      return hstu::OperandKind::GroupVector;
    case RowOperandKind::kScalar:
      return hstu::OperandKind::Scalar;
    case RowOperandKind::kSeed:
    case RowOperandKind::kSeedTensor:
      return hstu::OperandKind::Seed;
    case RowOperandKind::kGroupSum:
      return hstu::OperandKind::GroupSum;
    case RowOperandKind::kTable:
      return hstu::OperandKind::Table;
    case RowOperandKind::kTableSum:
      return hstu::OperandKind::TableSum;
    case RowOperandKind::kColumnSum:
      break;
  }
  return hstu::OperandKind::ColumnSum;
}

mlir::Type memory_type(mlir::Builder& builder, DataType dtype) {
  if (dtype == DataType::kBf16) return builder.getBF16Type();
  return dtype == DataType::kFp16 ? builder.getF16Type() : mlir::Type(builder.getF32Type());
}

mlir::ArrayAttr operands_attribute(mlir::Builder& builder, const std::vector<RowOperand>& operands) {
  mlir::SmallVector<mlir::Attribute> attributes;
  for (const RowOperand& operand : operands) {
    hstu::ColumnsAttr columns;
    if (!operand.tensor.empty())
      columns = hstu::ColumnsAttr::get(builder.getContext(), operand.tensor, operand.first_column);
    const mlir::Type type = operand.is_seed() ? builder.getI64Type() : memory_type(builder, operand.dtype);
    attributes.push_back(
        hstu::OperandAttr::get(builder.getContext(), operand.name, kind_of(operand.kind), type, columns));
  }
  return builder.getArrayAttr(attributes);
}

// Null for no names.
mlir::ArrayAttr names_attribute(mlir::Builder& builder, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return builder.getStrArrayAttr(mlir::SmallVector<llvm::StringRef>(names.begin(), names.end()));
}

}  // namespace

RowBuilder::RowBuilder(mlir::MLIRContext& context, const RowSpec& spec)
    : builder_(&context),
      ops_(builder_, builder_.getUnknownLoc()),
      interface_(spec.interface(Direction::kForward)),
      elements_(mlir::VectorType::get({interface_.width}, builder_.getF32Type())),
      module_(mlir::ModuleOp::create(ops_.location())) {
  builder_.setInsertionPointToEnd(module_->getBody());
  const mlir::IntegerAttr groups =
      interface_.groups > 1 ? builder_.getI64IntegerAttr(interface_.groups) : mlir::IntegerAttr();
  std::vector<std::string> constant;
  mlir::StringAttr residual;
  for (const RowOperand& input : interface_.inputs) {
    if (!input.differentiated) constant.push_back(input.name);
    if (input.residual) residual = builder_.getStringAttr(input.name);
    if (input.is_found()) found_.push_back(input.name);
  }
  for (const RowOperand& output : interface_.outputs) {
    if (output.is_found()) found_.push_back(output.name);
  }
  auto row = hstu::RowOp::create(builder_, ops_.location(), builder_.getI64IntegerAttr(interface_.width), groups,
                                 operands_attribute(builder_, interface_.inputs),
                                 operands_attribute(builder_, interface_.outputs), names_attribute(builder_, constant),
                                 residual, names_attribute(builder_, found_));
  mlir::SmallVector<mlir::Type> types;
  for (const RowOperand& input : interface_.inputs) {
    types.push_back(input.kind == RowOperandKind::kScalar ? mlir::Type(builder_.getF32Type())
                    : input.is_seed()                     ? mlir::Type(builder_.getI64Type())
                                                          : elements_);
  }
  body_ =
      builder_.createBlock(&row.getBody(), {}, types, mlir::SmallVector<mlir::Location>(types.size(), ops_.location()));
  if (found_.empty()) return;
  mlir::Block& index = row.getIndex().emplaceBlock();
  for (int i = 0; i < 2; ++i) index.addArgument(builder_.getIndexType(), ops_.location());
  index_.emplace(context, index);
}

mlir::Value RowBuilder::input(std::string_view name) const {
  for (size_t i = 0; i < interface_.inputs.size(); ++i) {
    if (interface_.inputs[i].name == name) return body_->getArgument(static_cast<unsigned>(i));
  }
  assert(false && "the operator has no such input");
  return {};
}

mlir::Value RowBuilder::sum(Value elements) {
  return hstu::ReduceOp::create(builder_, ops_.location(), builder_.getF32Type(), elements);
}

mlir::Value RowBuilder::mean(Value elements) {
  return ops_.mulf(sum(elements), ops_.real(1.0 / static_cast<double>(interface_.width / interface_.groups)));
}

mlir::Value RowBuilder::splat(Value number) {
  return hstu::SplatOp::create(builder_, ops_.location(), elements_, number);
}

mlir::Value RowBuilder::rounded(Value elements, DataType dtype) {
  if (dtype == DataType::kFp32) return elements;
  return hstu::RoundOp::create(builder_, ops_.location(), elements, memory_type(builder_, dtype));
}

mlir::Value RowBuilder::layer_norm(Value x, Value eps) {
  const Value centered = named("centered", hstu::CenterOp::create(builder_, ops_.location(), x.getType(), x));
  const Value variance = named("variance", this->mean(ops_.mulf(centered, centered)));
  const Value rstd = named("rstd", ops_.rsqrt(ops_.addf(variance, eps)));
  return named("normalized", ops_.mulf(centered, splat(rstd)));
}

mlir::Value RowBuilder::rms_norm(Value x, Value eps) {
  const Value square = named("mean_square", mean(ops_.mulf(x, x)));
  const Value rstd = named("rstd", ops_.rsqrt(ops_.addf(square, eps)));
  return named("normalized", ops_.mulf(x, splat(rstd)));
}

mlir::Value RowBuilder::dropout(Value x, int64_t columns, int64_t first) {
  const Value random = named("random", hstu::RandomOp::create(builder_, ops_.location(), elements_, input("seed"),
                                                              input("offset"), columns, first));
  // Random numbers are multiples of 2^-16 from 128 on, and so is what they are compared with: from 128 to 256
  // neighbouring fp32 numbers are that far apart. So what is kept is scaled by just what is dropped.
  const Value place = ops_.real(128), one = ops_.real(1);
  const Value least = ops_.addf(input("dropout_ratio"), place), ratio = ops_.subf(least, place);
  const Value factor = ops_.divf(one, ops_.subf(one, ratio));
  // Chosen before it multiplies: of a ratio of 1 it is infinity, and forward and backward are 0.
  const Value kept = ops_.select(ops_.gef(random, splat(least)), splat(factor), elements(0));
  return ops_.mulf(x, kept);
}

mlir::Value RowBuilder::named(std::string_view name, Value value) const {
  value.getDefiningOp()->setLoc(mlir::NameLoc::get(mlir::StringAttr::get(value.getContext(), name)));
  return value;
}

Module RowBuilder::finish(const std::vector<Value>& outputs) {
  hstu::YieldOp::create(builder_, ops_.location(), mlir::ValueRange(outputs));
  if (index_) {
    mlir::SmallVector<Value> rows;
    for (const std::string& operand : found_) rows.push_back(index_->found().at(operand));
    hstu::YieldOp::create(index_->ops().builder(), ops_.location(), rows);
  }
  return std::move(module_);
}

}  // namespace hstujit
