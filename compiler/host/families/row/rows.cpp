// Operators over rows on the host, all of them.
//
// An item is a number of rows. Each is loaded to scratch as fp32, padded to whole vectors, and gone through in the
// rounds of compiler/passes/row_functions.h. What the rows of an item add to sums over all rows is left in the parts of
// a launch, which finish() adds up in the order of the items; how rows are cut into items depends on the sizes alone.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "compiler/host/families/row/row_index.h"
#include "compiler/host/lift_lanes.h"
#include "compiler/host/operator.h"
#include "compiler/host/philox.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/row_functions.h"
#include "compiler/spec/rounding.h"
#include "compiler/spec/row_spec.h"
#include "compiler/support/integers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace hstujit {

namespace {

using mlir::Value;

// Items of one launch, at most; and elements of an item, at least.
constexpr int64_t kMaxItems = 128;
constexpr int64_t kMinElements = 16384;

// Coordinates of an item. Where rows are those of sequences, the sequence and its first row; where there are tables to
// be added to, the place among the parts of what the rows add to them.
constexpr size_t kBegin = 0, kEnd = 1, kItem = 2, kSequenceNumber = 3, kFirst = 4, kTableRows = 5;

std::vector<RowOperand> sums_of(const RowInterface& interface) {
  std::vector<RowOperand> sums;
  std::copy_if(interface.outputs.begin(), interface.outputs.end(), std::back_inserter(sums),
               [](const RowOperand& operand) { return operand.is_sum(); });
  return sums;
}

// Parts hold what a row adds to a table: the row of the table, as two numbers that fp32 holds, then the elements.
constexpr int64_t kIndexPart = int64_t{1} << 20;
constexpr int64_t kIndexParts = 2;

// Writes the body of the item function. A group of a row is computed after the other: it depends on its own elements
// and sums alone.
class RowEmitter {
 public:
  RowEmitter(const RowInterface& interface, ItemFunction& function)
      : interface_(interface),
        function_(function),
        functions_(find_row_functions(function.regions)),
        emit_(function.emit),
        width_(interface.width),
        group_(interface.width / interface.groups),
        padded_(round_up(interface.width, emit_.tile().lanes)) {
    // Lanes of a group's last elements may reach behind the row.
    const int64_t lanes = emit_.tile().lanes, row = interface.groups == 1 ? padded_ : padded_ + lanes;
    for (const RowOperand& input : interface.inputs) {
      if (input.kind == RowOperandKind::kRow || input.kind == RowOperandKind::kVector ||
          input.kind == RowOperandKind::kTable)
        rows_[input.name] = emit_.allocate(1, row);
      if (input.kind == RowOperandKind::kGroupVector)
        groups_[input.name] = emit_.allocate(1, round_up(interface.groups, lanes));
    }
    for (const RowOperand& output : interface.outputs) {
      rows_[output.name] = emit_.allocate(1, row);
      if (output.is_sum()) rests_[output.name] = emit_.allocate(1, row);
    }
    for (const RowRandom& random : functions_.randoms) randoms_[random.name] = random;
  }

  Status emit() {
    const Value one = emit_.integer(1);
    for (const RowOperand& input : interface_.inputs) {
      if (input.kind == RowOperandKind::kVector)
        emit_.copy_rows({argument(input), input.dtype, width_, {}, {}}, one, one, rows_[input.name]);
      if (input.kind == RowOperandKind::kGroupVector)
        emit_.copy_rows({argument(input), input.dtype, interface_.groups, {}, {}}, one, one, groups_[input.name]);
    }
    for (const RowOperand& sum : sums_of(interface_)) {
      emit_.clear(rows_[sum.name], one);
      emit_.clear(rests_[sum.name], one);
    }
    emit_.loop(function_.coordinates[kBegin], function_.coordinates[kEnd], 1, [&](Value row) { emit_row(row); });
    store_parts();
    return status_;
  }

 private:
  Value argument(const RowOperand& operand) const { return function_.argument(operand.argument()); }
  Value address(const std::string& operand, Value column) {
    return emit_.address(rows_.at(operand), emit_.integer(0), column);
  }

  void emit_row(Value row) {
    row_ = row;
    if (interface_.sequences) {
      found_ = emit_row_index(function_, functions_, interface_, function_.coordinates[kSequenceNumber],
                              emit_.sub(row, function_.coordinates[kFirst]));
    }
    for (const RowOperand& input : interface_.inputs) {
      if (input.kind == RowOperandKind::kRow || input.kind == RowOperandKind::kTable) load_row(input);
    }
    if (interface_.groups == 1) {
      emit_group(emit_.integer(0), padded_);
    } else {
      emit_.loop(emit_.integer(0), emit_.integer(width_), group_, [&](Value first) { emit_group(first, group_); });
    }
    for (const RowOperand& output : interface_.outputs) {
      if (output.kind == RowOperandKind::kRow) store_row(output);
    }
    store_table_rows();
  }

  // A row of zeros, or of what is missing, where the tensor has none.
  void load_row(const RowOperand& input) {
    const Value one = emit_.integer(1);
    const auto found = found_.find(input.name);
    const Value row = found == found_.end() ? row_ : found->second;
    const auto load = [&] {
      emit_.copy_rows({argument(input), input.dtype, width_, row, {}, input.first_column}, one, one, rows_[input.name]);
    };
    if (found == found_.end()) return load();
    emit_.when(emit_.ge(row, emit_.integer(0)), load, [&] {
      const Value missing = input.fill.empty() ? emit_.real(input.missing) : function_.argument(input.fill);
      const ScratchMatrix to = rows_[input.name];
      emit_.loop(emit_.integer(0), emit_.integer(to.width), emit_.tile().lanes, [&](Value column) {
        emit_.store_lanes(emit_.broadcast(missing), emit_.address(to, emit_.integer(0), column));
      });
    });
  }

  void store_row(const RowOperand& output) {
    const auto found = found_.find(output.name);
    const Value row = found == found_.end() ? row_ : found->second;
    const auto store = [&] {
      const Emitter::RowFactor unchanged = [&](Value) { return emit_.real(1); };
      emit_.write_rows(rows_[output.name], unchanged,
                       {argument(output), output.dtype, width_, row, {}, output.first_column}, emit_.integer(1));
    };
    if (found == found_.end()) return store();
    emit_.when(emit_.ge(row, emit_.integer(0)), store);
  }

  // To the parts, for finish().
  void store_table_rows() {
    const std::vector<RowOperand> sums = interface_.outputs_of(RowOperandKind::kTableSum);
    const auto count = static_cast<int64_t>(sums.size());
    for (int64_t i = 0; i < count; ++i) {
      const std::string& name = sums[static_cast<size_t>(i)].name;
      const Value number = emit_.add(emit_.mul(row_, emit_.integer(count)), emit_.integer(i));
      const Value begin =
          emit_.add(function_.coordinates[kTableRows], emit_.mul(number, emit_.integer(kIndexParts + padded_)));
      const Value index = found_.at(name), unit = emit_.integer(kIndexPart);
      const Value high = emit_.floor_div(index, unit), low = emit_.sub(index, emit_.mul(high, unit));
      emit_.store_element(emit_.to_real(high), function_.parts, begin);
      emit_.store_element(emit_.to_real(low), function_.parts, emit_.add(begin, emit_.integer(1)));
      const Value elements = emit_.add(begin, emit_.integer(kIndexParts));
      emit_.loop(emit_.integer(0), emit_.integer(padded_), emit_.tile().lanes, [&](Value column) {
        mlir::vector::StoreOp::create(emit_.builder(), emit_.location(), emit_.load_lanes(address(name, column)),
                                      function_.parts, emit_.add(elements, column));
      });
    }
  }

  // From column `first` on; `stored` elements of the outputs are stored.
  void emit_group(Value first, int64_t stored) {
    first_ = first;
    statistics_.clear();
    for (const RowRound& round : functions_.rounds) emit_round(round);
    const int64_t lanes = emit_.tile().lanes, whole = round_down(stored, lanes);
    if (whole > 0)
      emit_.loop(emit_.integer(0), emit_.integer(whole), lanes, [&](Value column) { emit_outputs(column, {}); });
    if (whole < stored) emit_outputs(emit_.integer(whole), inside(stored - whole));
  }

  // Whether a lane is among the first `count`.
  Value inside(int64_t count) {
    mlir::SmallVector<bool> inside;
    for (int64_t i = 0; i < emit_.tile().lanes; ++i) inside.push_back(i < count);
    const auto type = emit_.lanes_of(emit_.builder().getI1Type());
    return mlir::arith::ConstantOp::create(emit_.builder(), emit_.location(),
                                           mlir::DenseElementsAttr::get(type, inside));
  }

  // Sums of lanes over whole vectors, then over what is left, whose padding does not count.
  void emit_round(const RowRound& round) {
    const unsigned count = mlir::func::FuncOp(round.summands).getNumResults();
    const int64_t lanes = emit_.tile().lanes, whole = round_down(group_, lanes);
    Emitter::Values sums(count, emit_.zero_lanes());
    sums = emit_.loop(emit_.integer(0), emit_.integer(whole), lanes, sums, [&](Value column, const auto& before) {
      Emitter::Values after = call(round.summands, column);
      for (unsigned i = 0; i < count; ++i) after[i] = emit_.addf(before[i], after[i]);
      return after;
    });
    if (whole < group_) {
      const Emitter::Values last = call(round.summands, emit_.integer(whole));
      const Value counts = inside(group_ - whole);
      for (unsigned i = 0; i < count; ++i)
        sums[i] = emit_.addf(sums[i], emit_.select(counts, last[i], emit_.zero_lanes()));
    }
    for (unsigned i = 0; i < count; ++i) statistics_[row_sum_name(i)] = emit_.sum_lanes(sums[i]);
    const Emitter::Values numbers = call(round.statistics, {});
    for (unsigned i = 0; i < numbers.size(); ++i) statistics_[result_name(round.statistics, i)] = numbers[i];
  }

  // Emits outputs of the lanes that are inside; of all where that is null.
  void emit_outputs(Value column, Value inside) {
    const Emitter::Values values = call(functions_.outputs, column);
    for (unsigned i = 0; i < values.size(); ++i) {
      const std::string name = result_name(functions_.outputs, i);
      const Value at = emit_.add(first_, column), place = address(name, at);
      const auto store = [&](Value value, Value to) {
        emit_.store_lanes(inside ? emit_.select(inside, value, emit_.load_lanes(to)) : value, to);
      };
      if (!rests_.contains(name)) {
        store(values[i], place);
        continue;
      }
      // Rounding errors of the addition are added up, too: an item may have thousands of rows.
      const Value before = emit_.load_lanes(place), total = emit_.addf(before, values[i]);
      const Value added = emit_.subf(total, before);
      const Value lost = emit_.addf(emit_.subf(before, emit_.subf(total, added)), emit_.subf(values[i], added));
      const Value rest = emit_.address(rests_.at(name), emit_.integer(0), at);
      store(emit_.addf(emit_.load_lanes(rest), lost), rest);
      store(total, place);
    }
  }

  Value emit_random(const RowRandom& random, Value column) {
    const Value row =
        interface_.has_row_numbers ? emit_integer(function_.argument(std::string(kRowNumbers)), row_) : row_;
    const Value element =
        emit_.add(emit_.add(emit_.mul(row, emit_.integer(random.columns)), emit_.integer(random.first)),
                  emit_.add(first_, column));
    return emit_philox_uniform(emit_, emit_seed(random.seed), emit_seed(random.offset), element);
  }

  // An element of a tensor of integers.
  Value emit_integer(Value tensor, Value index) {
    return mlir::arith::IndexCastOp::create(emit_.builder(), emit_.location(), emit_.builder().getIndexType(),
                                            emit_.load_element(tensor, index));
  }

  // An input that decides random numbers.
  Value emit_seed(const std::string& name) {
    const auto input = std::find_if(interface_.inputs.begin(), interface_.inputs.end(),
                                    [&](const RowOperand& operand) { return operand.name == name; });
    const Value value = argument(*input);
    return input->kind == RowOperandKind::kSeedTensor ? emit_integer(value, emit_.integer(0)) : value;
  }

  Value emit_argument(const std::string& name, Value column) {
    if (const auto known = statistics_.find(name); known != statistics_.end()) return known->second;
    if (const auto random = randoms_.find(name); random != randoms_.end()) return emit_random(random->second, column);
    if (const auto group = groups_.find(name); group != groups_.end()) {
      const Value number = emit_.div(first_, emit_.integer(group_));
      return emit_.load_scalar(emit_.address(group->second, emit_.integer(0), number));
    }
    if (rows_.contains(name)) return emit_.load_lanes(address(name, emit_.add(first_, column)));
    return function_.argument(name);
  }

  // The results for a column's lanes, counted from the group's first one, or, without a column, for the group.
  Emitter::Values call(mlir::func::FuncOp function, Value column) {
    Emitter::Values arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      arguments.push_back(emit_argument(argument_name(function, i), column));
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
    const std::vector<RowOperand> sums = sums_of(interface_);
    const auto count = static_cast<int64_t>(sums.size());
    for (int64_t i = 0; i < count; ++i) {
      const Value begin =
          emit_.mul(emit_.add(emit_.mul(function_.coordinates[kItem], emit_.integer(count)), emit_.integer(i)),
                    emit_.integer(padded_));
      emit_.loop(emit_.integer(0), emit_.integer(padded_), emit_.tile().lanes, [&](Value column) {
        const std::string& name = sums[static_cast<size_t>(i)].name;
        const Value sum = emit_.load_lanes(address(name, column));
        const Value rest = emit_.load_lanes(emit_.address(rests_.at(name), emit_.integer(0), column));
        // The rest of an infinite sum is NaN, and does not count.
        const Value number =
            mlir::arith::CmpFOp::create(emit_.builder(), emit_.location(), mlir::arith::CmpFPredicate::ORD, rest, rest);
        mlir::vector::StoreOp::create(emit_.builder(), emit_.location(),
                                      emit_.select(number, emit_.addf(sum, rest), sum), function_.parts,
                                      emit_.add(begin, column));
      });
    }
  }

  const RowInterface& interface_;
  ItemFunction& function_;
  const RowFunctions functions_;
  Emitter& emit_;
  const int64_t width_, group_, padded_;         // elements of a row, of a group of it
  std::map<std::string, ScratchMatrix> rows_;    // a row of each operand that has elements
  std::map<std::string, ScratchMatrix> rests_;   // what additions to sums rounded off
  std::map<std::string, ScratchMatrix> groups_;  // the numbers of all groups
  std::map<std::string, RowRandom> randoms_;
  std::map<std::string, Value> found_;       // rows that the index finds, -1 where a tensor has none
  Value row_, first_;                        // the row's number, and the group's first column
  std::map<std::string, Value> statistics_;  // of the group, its sums too
  Status status_;
};

class HostRows final : public HostOperator {
 public:
  HostRows(const RowSpec& spec, Direction direction, const RegisterTile& tile)
      : interface_(spec.interface(direction)), padded_(round_up(interface_.width, tile.lanes)) {}

  Status emit(ItemFunction& function) override { return RowEmitter(interface_, function).emit(); }

  Result<std::vector<WorkItem>> items(const Arguments& arguments) const override {
    const int64_t rows = rows_of(arguments), step = rows_of_item(rows);
    std::vector<WorkItem> items;
    if (interface_.sequences) {
      for (const SequencePart& part : sequence_parts(*interface_.sequences, arguments, rows, step))
        items.push_back({{part.begin, part.end, 0, part.sequence, part.first, column_parts_size(arguments)},
                         static_cast<double>(part.end - part.begin)});
      return items;
    }
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t end = std::min(begin + step, rows);
      items.push_back({{begin, end, static_cast<int64_t>(items.size())}, static_cast<double>(end - begin)});
    }
    return items;
  }

  int64_t parts_size(const Arguments& arguments) const override {
    const auto tables = static_cast<int64_t>(interface_.outputs_of(RowOperandKind::kTableSum).size());
    return column_parts_size(arguments) + rows_of(arguments) * tables * (kIndexParts + padded_);
  }

  void finish(const Arguments& arguments, const float* parts) const override {
    finish_tables(arguments, parts + column_parts_size(arguments));
    const std::vector<RowOperand> sums = sums_of(interface_);
    for (size_t i = 0; i < sums.size(); ++i) {
      HostTensor total;
      total.shape = {interface_.elements(sums[i])};
      total.reals.assign(static_cast<size_t>(total.shape[0]), 0);
      const int64_t summed = interface_.width / total.shape[0];  // columns of a number
      for (int64_t item = 0; item < item_count(arguments); ++item) {
        const float* part = parts + (item * static_cast<int64_t>(sums.size()) + static_cast<int64_t>(i)) * padded_;
        for (int64_t column = 0; column < interface_.width; ++column)
          total.reals[static_cast<size_t>(column / summed)] += part[column];
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
    const int64_t rows = rows_of(arguments);
    return ceil_div(rows, rows_of_item(rows));
  }
  // Rows that are gone through.
  int64_t rows_of(const Arguments& arguments) const { return arguments.size(interface_.walked().argument(), 0); }
  int64_t column_parts_size(const Arguments& arguments) const {
    return item_count(arguments) * static_cast<int64_t>(sums_of(interface_).size()) * padded_;
  }

  // In the order of the rows, in float64. Rows that are of no sequence have left zeros.
  void finish_tables(const Arguments& arguments, const float* part) const {
    const std::vector<RowOperand> sums = interface_.outputs_of(RowOperandKind::kTableSum);
    const auto width = static_cast<size_t>(interface_.width);
    std::vector<std::vector<double>> totals;
    for (const RowOperand& sum : sums)
      totals.emplace_back(static_cast<size_t>(arguments.size(sum.name, 0)) * width, 0.0);
    for (int64_t row = 0; row < rows_of(arguments); ++row) {
      for (std::vector<double>& total : totals) {
        const int64_t index = static_cast<int64_t>(part[0]) * kIndexPart + static_cast<int64_t>(part[1]);
        const float* const elements = part + kIndexParts;
        for (size_t i = 0; index >= 0 && i < width && !total.empty(); ++i)
          total[static_cast<size_t>(index) * width + i] += elements[i];
        part = elements + padded_;
      }
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      const HstujitHostValue& value =
          arguments.at(static_cast<size_t>(find_argument(arguments.signature(), sums[i].name)));
      const size_t element = size_of(sums[i].dtype);
      for (int64_t row = 0; row < value.shape[0]; ++row) {
        HostTensor line{{interface_.width}, {}, {}};
        const auto begin = totals[i].begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(row) * width);
        line.reals.assign(begin, begin + static_cast<std::ptrdiff_t>(width));
        const std::vector<std::byte> bytes = pack(line, sums[i].dtype);
        std::memcpy(static_cast<std::byte*>(value.data) + static_cast<size_t>(row * value.strides[0]) * element,
                    bytes.data(), bytes.size());
      }
    }
  }

  RowInterface interface_;
  int64_t padded_;
};

}  // namespace

Result<HostOperatorPtr> make_host_row(OpSpecPtr spec, Direction direction, const RegisterTile& tile) {
  return HostOperatorPtr(std::make_unique<HostRows>(static_cast<const RowSpec&>(*spec), direction, tile));
}

}  // namespace hstujit
