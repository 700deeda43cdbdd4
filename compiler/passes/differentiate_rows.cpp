// hstu.row -> the hstu.row of its gradient, by reverse mode: forward mode gives a program that is linear in the
// derivatives of the inputs (differentiator.h), which is then transposed (transposer.h). Nothing is saved by the
// forward operator: the gradient computes its numbers anew from the same rows, which it has to read anyway.
#include "compiler/ir/hstu.h"
#include "compiler/passes/differentiator.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/transposer.h"
#include "compiler/spec/row_interface.h"
#include "mlir/IR/IRMapping.h"

namespace hstujit {

namespace {

using hstu::OperandAttr;
using hstu::OperandKind;
using mlir::Value;

bool is_named(mlir::ArrayAttr names, llvm::StringRef name) {
  return names && llvm::is_contained(names.getAsValueRange<mlir::StringAttr>(), name);
}

bool has_gradient(hstu::RowOp row, OperandAttr input) {
  return input.getKind() != OperandKind::Scalar && input.getKind() != OperandKind::Seed &&
         !is_named(row.getConstantAttr(), input.getName());
}

OperandKind gradient_kind(OperandKind kind) {
  if (kind == OperandKind::Vector) return OperandKind::ColumnSum;
  if (kind == OperandKind::Table) return OperandKind::TableSum;
  return kind == OperandKind::GroupVector ? OperandKind::GroupSum : kind;
}

OperandAttr gradient_of(OperandAttr operand) {
  hstu::ColumnsAttr columns = operand.getColumns();
  if (columns)
    columns = hstu::ColumnsAttr::get(operand.getContext(), ("d" + columns.getTensor()).str(), columns.getFirst());
  return OperandAttr::get(operand.getContext(), ("d" + operand.getName()).str(), gradient_kind(operand.getKind()),
                          operand.getDtype(), columns);
}

// The operands of the gradient whose rows are found: the inputs, as before, and the gradients of inputs and outputs,
// where those are. Each with the number of the one whose row it is.
mlir::SmallVector<std::pair<std::string, unsigned>> found_in_gradient(hstu::RowOp forward) {
  mlir::SmallVector<std::pair<std::string, unsigned>> found, gradients;
  if (!forward.getFound()) return found;
  for (const auto& [i, name] : llvm::enumerate(forward.getFound()->getAsValueRange<mlir::StringAttr>())) {
    const auto inputs = forward.getInputs().getAsRange<OperandAttr>();
    const auto input = llvm::find_if(inputs, [&](OperandAttr operand) { return operand.getName() == name; });
    const auto number = static_cast<unsigned>(i);
    if (input != inputs.end()) found.emplace_back(name.str(), number);
    if (input == inputs.end() || has_gradient(forward, *input)) gradients.emplace_back(("d" + name).str(), number);
  }
  llvm::append_range(found, gradients);
  return found;
}

// The index of the gradient, which finds these.
void copy_index(hstu::RowOp forward, hstu::RowOp gradient, mlir::ArrayRef<std::pair<std::string, unsigned>> found) {
  if (found.empty()) return;
  mlir::IRMapping mapping;
  forward.getIndex().cloneInto(&gradient.getIndex(), mapping);
  auto end = mlir::cast<hstu::YieldOp>(gradient.getIndex().front().getTerminator());
  const mlir::SmallVector<Value> rows(end.getValues());
  mlir::SmallVector<Value> results;
  for (const auto& [name, number] : found) results.push_back(rows[number]);
  end.getValuesMutable().assign(results);
  // A gradient has as many rows as what it is of, which the gradient operator need not take.
  gradient.getIndex().walk([&](hstu::ExtentOp extent) {
    const auto operands = gradient.getOutputs().getAsRange<OperandAttr>();
    const std::string name = ("d" + extent.getOperand()).str();
    if (llvm::any_of(operands, [&](OperandAttr operand) { return operand.getName() == name; })) extent.setOperand(name);
  });
}

struct DifferentiateRows : mlir::PassWrapper<DifferentiateRows, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DifferentiateRows)
  llvm::StringRef getArgument() const final { return "hstu-differentiate-rows"; }
  llvm::StringRef getDescription() const final { return "replace hstu.row by its gradient"; }

  mlir::LogicalResult differentiate(hstu::RowOp forward) {
    mlir::OpBuilder builder(forward);
    Ops ops(builder, forward.getLoc());
    const auto forward_inputs = llvm::to_vector(forward.getInputs().getAsRange<OperandAttr>());
    mlir::SmallVector<mlir::Attribute> inputs(forward_inputs.begin(), forward_inputs.end()), outputs;
    for (const OperandAttr output : forward.getOutputs().getAsRange<OperandAttr>())
      inputs.push_back(gradient_of(output));
    const mlir::StringAttr residual = forward.getResidualAttr();
    for (const OperandAttr input : forward_inputs) {
      if (residual && input.getName() == residual.getValue()) {
        inputs.push_back(OperandAttr::get(input.getContext(), std::string(kResidualGradient), OperandKind::Row,
                                          input.getDtype(), hstu::ColumnsAttr()));
      }
    }
    for (const OperandAttr input : forward_inputs) {
      if (has_gradient(forward, input)) outputs.push_back(gradient_of(input));
    }
    const auto found = found_in_gradient(forward);
    mlir::SmallVector<llvm::StringRef> names;
    for (const auto& [name, number] : found) names.push_back(name);
    auto gradient =
        hstu::RowOp::create(builder, forward.getLoc(), forward.getWidthAttr(), forward.getGroupsAttr(),
                            builder.getArrayAttr(inputs), builder.getArrayAttr(outputs), mlir::ArrayAttr(),
                            mlir::StringAttr(), names.empty() ? mlir::ArrayAttr() : builder.getStrArrayAttr(names));
    copy_index(forward, gradient, found);

    // The body's arguments, then a derivative of each input that has one.
    mlir::Block& source = forward.getBody().front();
    auto end = mlir::cast<hstu::YieldOp>(source.getTerminator());
    mlir::SmallVector<mlir::Type> types(source.getArgumentTypes());
    llvm::append_range(types, end.getValues().getTypes());
    if (residual) types.push_back(end.getValues().front().getType());
    const size_t arguments = types.size();
    for (const auto& [input, type] : llvm::zip(forward_inputs, source.getArgumentTypes())) {
      if (has_gradient(forward, input)) types.push_back(type);
    }
    mlir::Block* body = builder.createBlock(&gradient.getBody(), {}, types,
                                            mlir::SmallVector<mlir::Location>(types.size(), forward.getLoc()));
    const auto tangents = body->getArguments().drop_front(arguments);
    Differentiator differentiator(ops, source, *body);
    size_t next = 0;
    Value around;  // the derivative of the residual
    for (const auto& [input, argument] : llvm::zip(forward_inputs, source.getArguments())) {
      if (!has_gradient(forward, input)) continue;
      const Value tangent = tangents[next++];
      differentiator.seed(argument, {Derivative::Kind::kValue, tangent});
      if (residual && input.getName() == residual.getValue()) around = tangent;
    }
    for (mlir::Operation& operation : source.without_terminator()) {
      if (!differentiator.visit(operation)) return operation.emitError() << "has no derivative";
    }

    mlir::SmallVector<Value> derivatives;
    for (const Value output : end.getValues()) derivatives.push_back(differentiator.derivative(output));
    Transposer transposer(ops, *body, tangents);
    for (const auto& [i, derivative] : llvm::enumerate(derivatives))
      transposer.add(derivative, body->getArgument(static_cast<unsigned>(forward_inputs.size() + i)));
    if (around) transposer.add(around, body->getArgument(static_cast<unsigned>(arguments - 1)));
    if (failed(transposer.run())) return mlir::failure();
    mlir::SmallVector<Value> results;
    for (const Value tangent : tangents) {
      const Value result = transposer.gradient(tangent);
      results.push_back(result ? result : ops.real(0, tangent.getType()));
    }
    hstu::YieldOp::create(builder, forward.getLoc(), results);
    transposer.erase_program();
    body->eraseArguments(static_cast<unsigned>(arguments), static_cast<unsigned>(tangents.size()));
    forward.erase();
    return mlir::success();
  }

  void runOnOperation() override {
    for (auto row : llvm::make_early_inc_range(getOperation().getOps<hstu::RowOp>())) {
      if (failed(differentiate(row))) return signalPassFailure();
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_differentiate_rows_pass() { return std::make_unique<DifferentiateRows>(); }

}  // namespace hstujit
