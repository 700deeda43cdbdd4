#include "compiler/host/families/row/row_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace hstujit {

namespace {

using mlir::Value;

int64_t first_row(const RowSequences& sequences, const Arguments& arguments, int64_t sequence) {
  int64_t first = 0;
  for (const Dimension& axis : sequences.walked) {
    const int64_t begin =
        axis.is_uniform() ? sequence * arguments.integer(axis.integer) : arguments.element(axis.offsets, sequence);
    if (__builtin_add_overflow(first, begin, &first)) return -1;
  }
  return first;
}

class IndexEmitter {
 public:
  IndexEmitter(ItemFunction& item, const RowInterface& interface)
      : item_(item), interface_(interface), emit_(item.emit) {}

  // A copy of one operation of the index, whose operands are mapped.
  void copy(mlir::Operation& operation, mlir::IRMapping& mapping) {
    if (auto element = mlir::dyn_cast<hstu::ElementOp>(operation)) {
      mapping.map(element.getResult(), load(element.getTensor().str(), mapping.lookup(element.getIndex())));
    } else if (auto extent = mlir::dyn_cast<hstu::ExtentOp>(operation)) {
      mapping.map(extent.getResult(), rows(argument_of(extent.getOperand().str())));
    } else if (auto argument = mlir::dyn_cast<hstu::ArgumentOp>(operation)) {
      mapping.map(argument.getResult(), item_.argument(argument.getName().str()));
    } else {
      emit_.builder().clone(operation, mapping);
    }
  }

  // The row where the operand's tensor has it, else -1.
  Value within(const std::string& operand, Value row) {
    const Value inside = emit_.both(emit_.ge(row, emit_.integer(0)), emit_.lt(row, rows(argument_of(operand))));
    return emit_.select(inside, row, emit_.integer(-1));
  }

  bool has(const std::string& operand) const { return find(operand) != nullptr; }

 private:
  const RowOperand* find(const std::string& name) const {
    for (const std::vector<RowOperand>* operands : {&interface_.inputs, &interface_.outputs}) {
      for (const RowOperand& operand : *operands) {
        if (operand.name == name) return &operand;
      }
    }
    return nullptr;
  }
  const std::string& argument_of(const std::string& operand) const { return find(operand)->argument(); }

  Value rows(const std::string& argument) {
    return mlir::memref::DimOp::create(emit_.builder(), emit_.location(), item_.argument(argument), 0);
  }

  Value load(const std::string& tensor, Value index) {
    const Value last = emit_.sub(rows(tensor), emit_.integer(1));
    const Value nearest = emit_.max(emit_.min(index, last), emit_.integer(0));
    return mlir::arith::IndexCastOp::create(emit_.builder(), emit_.location(), emit_.builder().getIndexType(),
                                            emit_.load_element(item_.argument(tensor), nearest));
  }

  ItemFunction& item_;
  const RowInterface& interface_;
  Emitter& emit_;
};

}  // namespace

std::vector<SequencePart> sequence_parts(const RowSequences& sequences, const Arguments& arguments, int64_t rows,
                                         int64_t step) {
  std::vector<SequencePart> parts;
  int64_t done = 0;
  for (int64_t sequence = 0; sequence < arguments.symbol("B"); ++sequence) {
    const int64_t first = first_row(sequences, arguments, sequence);
    const int64_t end = std::min(first_row(sequences, arguments, sequence + 1), rows);
    if (first < 0) continue;
    for (int64_t begin = std::max(first, done); begin < end; begin = done) {
      done = std::min(begin + step, end);
      parts.push_back({sequence, first, begin, done});
    }
  }
  return parts;
}

std::map<std::string, Value> emit_row_index(ItemFunction& item, const RowFunctions& functions,
                                            const RowInterface& interface, Value sequence, Value position) {
  mlir::func::FuncOp function = functions.index;
  IndexEmitter emitter(item, interface);
  mlir::Block& block = function.getBody().front();
  mlir::IRMapping mapping;
  mapping.map(block.getArgument(0), sequence);
  mapping.map(block.getArgument(1), position);
  for (mlir::Operation& operation : block.without_terminator()) emitter.copy(operation, mapping);
  std::map<std::string, Value> found;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    const std::string operand = result_name(function, i);
    if (emitter.has(operand))
      found[operand] = emitter.within(operand, mapping.lookup(block.getTerminator()->getOperand(i)));
  }
  return found;
}

}  // namespace hstujit
