// Operators over rows on the host, all of them.
//
// An item is a number of rows. Each is loaded to scratch as fp32, padded to whole vectors, and gone through in the
// rounds of compiler/passes/row_functions.h. What the rows of an item add to sums over all rows is left in the parts of
// a launch, which finish() adds up in the order of the items; how rows are cut into items depends on the sizes alone.
#include <algorithm>
#include <cstring>

#include "compiler/host/lift_lanes.h"
#include "compiler/host/operator.h"
#include "compiler/passes/region_functions.h"
#include "compiler/passes/row_functions.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/row_spec.h"
#include "compiler/support/integers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hstujit {

namespace {

using mlir::Value;

// Of one launch, at most; and elements of an item, at least.
constexpr int64_t kMaxItems = 128;
constexpr int64_t kMinElements = 16384;

// Coordinates of an item.
constexpr size_t kBegin = 0, kEnd = 1, kItem = 2;

std::vector<RowOperand> column_sums_of(const RowInterface& interface) {
  std::vector<RowOperand> sums;
  for (const RowOperand& output : interface.outputs) {
    if (output.kind == RowOperandKind::kColumnSum) sums.push_back(output);
  }
  return sums;
}

// Writes the body of the item function.
class RowEmitter {
 public:
  RowEmitter(const RowInterface& interface, ItemFunction& function)
      : interface_(interface),
        function_(function),
        functions_(find_row_functions(function.regions)),
        emit_(function.emit),
        width_(interface.width),
        padded_(round_up(interface.width, emit_.tile().lanes)) {
    for (const RowOperand& input : interface.inputs) {
      if (input.kind != RowOperandKind::kScalar) rows_[input.name] = emit_.allocate(1, padded_);
    }
    for (const RowOperand& output : interface.outputs) rows_[output.name] = emit_.allocate(1, padded_);
  }

  Status emit() {
    const Value one = emit_.integer(1);
    for (const RowOperand& input : interface_.inputs) {
      if (input.kind == RowOperandKind::kVector)
        emit_.copy_rows({argument(input), input.dtype, width_, {}, {}}, one, one, rows_[input.name]);
    }
    for (const RowOperand& sum : column_sums_of(interface_)) emit_.clear(rows_[sum.name], one);
    emit_.loop(function_.coordinates[kBegin], function_.coordinates[kEnd], 1, [&](Value row) { emit_row(row); });
    store_parts();
    return status_;
  }

 private:
  Value argument(const RowOperand& operand) const { return function_.argument(operand.name); }
  Value address(const std::string& operand, Value column) {
    return emit_.address(rows_.at(operand), emit_.integer(0), column);
  }

  void emit_row(Value row) {
    const Value one = emit_.integer(1);
    for (const RowOperand& input : interface_.inputs) {
      if (input.kind == RowOperandKind::kRow)
        emit_.copy_rows({argument(input), input.dtype, width_, row, {}}, one, one, rows_[input.name]);
    }
    statistics_.clear();
    for (const RowRound& round : functions_.rounds) emit_round(round);
    emit_.loop(emit_.integer(0), emit_.integer(padded_), emit_.tile().lanes,
               [&](Value column) { emit_outputs(column); });
    for (const RowOperand& output : interface_.outputs) {
      if (output.kind != RowOperandKind::kRow) continue;
      const Emitter::RowFactor unchanged = [&](Value) { return emit_.real(1); };
      emit_.write_rows(rows_[output.name], unchanged, {argument(output), output.dtype, width_, row, {}}, one);
    }
  }

  // Sums of lanes over whole vectors, then over what is left, whose padding does not count.
  void emit_round(const RowRound& round) {
    const unsigned count = mlir::func::FuncOp(round.summands).getNumResults();
    const int64_t lanes = emit_.tile().lanes, whole = round_down(width_, lanes);
    Emitter::Values sums(count, emit_.zero_lanes());
    sums = emit_.loop(emit_.integer(0), emit_.integer(whole), lanes, sums, [&](Value column, const auto& before) {
      Emitter::Values after = call(round.summands, column);
      for (unsigned i = 0; i < count; ++i) after[i] = emit_.addf(before[i], after[i]);
      return after;
    });
    if (whole < width_) {
      const Emitter::Values last = call(round.summands, emit_.integer(whole));
      mlir::SmallVector<bool> inside;
      for (int64_t i = 0; i < lanes; ++i) inside.push_back(whole + i < width_);
      const auto type = emit_.lanes_of(emit_.builder().getI1Type());
      const Value counts = mlir::arith::ConstantOp::create(emit_.builder(), emit_.location(),
                                                           mlir::DenseElementsAttr::get(type, inside));
      for (unsigned i = 0; i < count; ++i)
        sums[i] = emit_.addf(sums[i], emit_.select(counts, last[i], emit_.zero_lanes()));
    }
    for (unsigned i = 0; i < count; ++i) statistics_[row_sum_name(i)] = emit_.sum_lanes(sums[i]);
    const Emitter::Values numbers = call(round.statistics, {});
    for (unsigned i = 0; i < numbers.size(); ++i) statistics_[result_name(round.statistics, i)] = numbers[i];
  }

  void emit_outputs(Value column) {
    const Emitter::Values values = call(functions_.outputs, column);
    for (unsigned i = 0; i < values.size(); ++i) {
      const std::string name = result_name(functions_.outputs, i);
      const Value place = address(name, column);
      emit_.store_lanes(is_sum(name) ? emit_.addf(emit_.load_lanes(place), values[i]) : values[i], place);
    }
  }

  bool is_sum(const std::string& name) const {
    return std::any_of(interface_.outputs.begin(), interface_.outputs.end(), [&](const RowOperand& output) {
      return output.name == name && output.kind == RowOperandKind::kColumnSum;
    });
  }

  // The results for a column's lanes, or, without a column, for the row.
  Emitter::Values call(mlir::func::FuncOp function, Value column) {
    Emitter::Values arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      const std::string name = argument_name(function, i);
      if (const auto known = statistics_.find(name); known != statistics_.end()) {
        arguments.push_back(known->second);
      } else if (rows_.contains(name)) {
        arguments.push_back(emit_.load_lanes(address(name, column)));
      } else {
        arguments.push_back(function_.argument(name));
      }
    }
    auto results = emit_region(emit_, function, arguments);
    if (!results.ok()) {
      if (status_.ok()) status_ = results.status();
      return Emitter::Values(function.getNumResults(), column ? emit_.zero_lanes() : emit_.real(0));
    }
    if (column) {
      for (Value& result : *results) result = emit_.broadcast(result);
    }
    return std::move(results).value();
  }

  void store_parts() {
    const std::vector<RowOperand> sums = column_sums_of(interface_);
    const auto count = static_cast<int64_t>(sums.size());
    for (int64_t i = 0; i < count; ++i) {
      const Value begin =
          emit_.mul(emit_.add(emit_.mul(function_.coordinates[kItem], emit_.integer(count)), emit_.integer(i)),
                    emit_.integer(padded_));
      emit_.loop(emit_.integer(0), emit_.integer(padded_), emit_.tile().lanes, [&](Value column) {
        mlir::vector::StoreOp::create(emit_.builder(), emit_.location(),
                                      emit_.load_lanes(address(sums[static_cast<size_t>(i)].name, column)),
                                      function_.parts, emit_.add(begin, column));
      });
    }
  }

  const RowInterface& interface_;
  ItemFunction& function_;
  const RowFunctions functions_;
  Emitter& emit_;
  const int64_t width_, padded_;
  std::map<std::string, ScratchMatrix> rows_;  // a row of each operand that has elements
  std::map<std::string, Value> statistics_;    // of the row, its sums too
  Status status_;
};

class HostRows final : public HostOperator {
 public:
  HostRows(const RowSpec& spec, Direction direction, const RegisterTile& tile)
      : interface_(spec.interface(direction)), padded_(round_up(interface_.width, tile.lanes)) {}

  Status emit(ItemFunction& function) override { return RowEmitter(interface_, function).emit(); }

  Result<std::vector<WorkItem>> items(const Arguments& arguments) const override {
    const int64_t rows = arguments.symbol("L"), step = rows_of_item(rows);
    std::vector<WorkItem> items;
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t end = std::min(begin + step, rows);
      items.push_back({{begin, end, static_cast<int64_t>(items.size())}, static_cast<double>(end - begin)});
    }
    return items;
  }

  int64_t parts_size(const Arguments& arguments) const override {
    return item_count(arguments) * static_cast<int64_t>(column_sums_of(interface_).size()) * padded_;
  }

  void finish(const Arguments& arguments, const float* parts) const override {
    const std::vector<RowOperand> sums = column_sums_of(interface_);
    for (size_t i = 0; i < sums.size(); ++i) {
      HostTensor total;
      total.shape = {interface_.width};
      total.reals.assign(static_cast<size_t>(interface_.width), 0);
      for (int64_t item = 0; item < item_count(arguments); ++item) {
        const float* part = parts + (item * static_cast<int64_t>(sums.size()) + static_cast<int64_t>(i)) * padded_;
        for (size_t column = 0; column < total.reals.size(); ++column) total.reals[column] += part[column];
      }
      const std::vector<std::byte> bytes = pack(total, sums[i].dtype);
      std::memcpy(arguments.data(sums[i].name), bytes.data(), bytes.size());
    }
  }

 private:
  int64_t rows_of_item(int64_t rows) const {
    return std::max({int64_t{1}, ceil_div(rows, kMaxItems), kMinElements / interface_.width});
  }
  int64_t item_count(const Arguments& arguments) const {
    const int64_t rows = arguments.symbol("L");
    return ceil_div(rows, rows_of_item(rows));
  }

  RowInterface interface_;
  int64_t padded_;
};

}  // namespace

Result<HostOperatorPtr> make_host_row(OpSpecPtr spec, Direction direction, const RegisterTile& tile) {
  return HostOperatorPtr(std::make_unique<HostRows>(static_cast<const RowSpec&>(*spec), direction, tile));
}

}  // namespace hstujit
