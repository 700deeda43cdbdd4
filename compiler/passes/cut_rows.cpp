// hstu.row -> the functions of row_functions.h. The body is cut at its sums: each is computed as soon as what it adds
// up is known, so that as few rounds as possible follow one another.
#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/row_functions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace hstujit {

namespace {

using mlir::Value;

bool is_elements(Value value) { return mlir::isa<mlir::VectorType>(value.getType()); }

// How many rounds must be over before a value is known.
class Depths {
 public:
  explicit Depths(mlir::Block& body) {
    for (mlir::Operation& operation : body.without_terminator()) {
      unsigned depth = 0;
      for (const Value operand : operation.getOperands()) depth = std::max(depth, of(operand));
      if (mlir::isa<hstu::ReduceOp>(operation)) ++depth;
      depths_[operation.getResult(0)] = depth;
      rounds_ = std::max(rounds_, depth);
    }
  }

  unsigned of(Value value) const { return depths_.lookup(value); }
  unsigned rounds() const { return rounds_; }

 private:
  llvm::DenseMap<Value, unsigned> depths_;
  unsigned rounds_ = 0;
};

// Names of statistics: what the IR calls them, made different from each other and from the inputs.
class Names {
 public:
  explicit Names(hstu::RowOp row) {
    for (const auto input : row.getInputs().getAsRange<hstu::OperandAttr>()) {
      inputs_.push_back(input.getName().str());
      taken_.insert(inputs_.back());
    }
  }

  std::string of(Value value) {
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) return inputs_[argument.getArgNumber()];
    std::string& name = names_[value];
    if (!name.empty()) return name;
    auto location = mlir::dyn_cast<mlir::NameLoc>(value.getLoc());
    const std::string stem = location ? location.getName().str() : is_elements(value) ? "random" : "statistic";
    name = stem;
    for (unsigned number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}{}", stem, number);
    return name;
  }

 private:
  std::vector<std::string> inputs_;
  std::set<std::string> taken_;
  llvm::DenseMap<Value, std::string> names_;
};

// One function under construction: values of the body are copied into it, down to those that are its arguments, as
// random numbers are.
class Slice {
 public:
  // `known`: whether a value that is not an input comes as an argument.
  Slice(mlir::ValueRange results, llvm::function_ref<bool(Value)> known) {
    for (const Value result : results) visit(result, known);
  }

  // In order of their use.
  const llvm::SetVector<Value>& arguments() const { return arguments_; }

  // Copies to the end of `block`; `mapping` has its arguments.
  void copy_to(mlir::OpBuilder& builder, mlir::IRMapping& mapping) const {
    for (mlir::Operation* operation : operations_) copy(builder, *operation, mapping);
  }

 private:
  void visit(Value value, llvm::function_ref<bool(Value)> known) {
    if (auto splat = value.getDefiningOp<hstu::SplatOp>()) return visit(splat.getValue(), known);
    mlir::Operation* operation = value.getDefiningOp();
    if (operation == nullptr || mlir::isa<hstu::RandomOp>(operation) || known(value)) {
      arguments_.insert(value);
      return;
    }
    if (operations_.contains(operation)) return;
    for (const Value operand : operation->getOperands()) visit(operand, known);
    operations_.insert(operation);
  }

  static void copy(mlir::OpBuilder& builder, mlir::Operation& operation, mlir::IRMapping& mapping) {
    for (const Value operand : operation.getOperands()) {
      if (auto splat = operand.getDefiningOp<hstu::SplatOp>()) mapping.map(operand, mapping.lookup(splat.getValue()));
    }
    if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(operation)) {
      auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
      const auto value = elements ? mlir::cast<mlir::TypedAttr>(elements.getSplatValue<mlir::Attribute>())
                                  : mlir::cast<mlir::TypedAttr>(constant.getValue());
      mapping.map(operation.getResult(0), mlir::arith::ConstantOp::create(builder, operation.getLoc(), value));
      return;
    }
    mlir::Operation* clone = builder.clone(operation, mapping);
    clone->getResult(0).setType(mlir::getElementTypeOrSelf(clone->getResult(0)));
  }

  llvm::SetVector<Value> arguments_;
  llvm::SetVector<mlir::Operation*> operations_;
};

class Cutter {
 public:
  explicit Cutter(hstu::RowOp row)
      : row_(row), body_(row.getBody().front()), depths_(body_), names_(row), builder_(row) {}

  void cut() {
    sums_.resize(depths_.rounds());
    statistics_.resize(depths_.rounds());
    for (auto sum : body_.getOps<hstu::ReduceOp>()) sums_[depths_.of(sum) - 1].push_back(sum);

    // Cuts values that elements take of the row, then, from the last round back, those that statistics take of earlier
    // ones.
    auto end = mlir::cast<hstu::YieldOp>(body_.getTerminator());
    need(elements_of(end.getValues()));
    for (const auto& sums : sums_) need(elements_of(operands_of(sums)));
    for (unsigned round = depths_.rounds(); round-- > 0;) need(numbers_of(round), round + 1);

    for (unsigned round = 0; round < depths_.rounds(); ++round) {
      mlir::SmallVector<std::string> sum_names;
      for (unsigned i = 0; i < sums_[round].size(); ++i) sum_names.push_back(row_sum_name(i));
      emit(row_summands_name(round), elements_of(operands_of(sums_[round])), operands_of(sums_[round]), sum_names);
      emit_statistics(round);
    }
    mlir::SmallVector<std::string> outputs;
    for (const auto output : row_.getOutputs().getAsRange<hstu::OperandAttr>())
      outputs.push_back(output.getName().str());
    emit(kRowOutputs, elements_of(end.getValues()), end.getValues(), outputs);
    emit_index();
  }

 private:
  using Values = mlir::SmallVector<Value>;

  static Values operands_of(const std::vector<hstu::ReduceOp>& sums) {
    Values operands;
    for (hstu::ReduceOp sum : sums) operands.push_back(sum.getValue());
    return operands;
  }

  // Over elements: numbers of the row that follow from its sums come as arguments, others are as good as constants.
  Slice elements_of(mlir::ValueRange results) const {
    return Slice(results, [this](Value value) { return !is_elements(value) && depths_.of(value) > 0; });
  }

  // The statistics that are known after a round.
  Slice numbers_of(unsigned round) const {
    const auto known = [this, round](Value value) {
      const unsigned depth = depths_.of(value);
      return (depth > 0 && depth <= round) || value.getDefiningOp<hstu::ReduceOp>();
    };
    return Slice(statistics_[round].getArrayRef(), known);
  }

  // Makes a statistic of each value that a function takes of the row, but for the sums of the round that it ends.
  void need(const Slice& slice, unsigned ended = 0) {
    for (const Value value : slice.arguments()) {
      const unsigned depth = depths_.of(value);
      const bool sum = depth == ended && value.getDefiningOp<hstu::ReduceOp>();
      if (depth > 0 && !is_elements(value) && !sum) statistics_[depth - 1].insert(value);
    }
  }

  mlir::func::FuncOp create(llvm::StringRef name, const Values& arguments, mlir::ArrayRef<std::string> argument_names,
                            mlir::ArrayRef<std::string> result_names) {
    const mlir::Type real = builder_.getF32Type();
    const auto type = builder_.getFunctionType(mlir::SmallVector<mlir::Type>(arguments.size(), real),
                                               mlir::SmallVector<mlir::Type>(result_names.size(), real));
    const auto refs = [](mlir::ArrayRef<std::string> names) {
      return mlir::SmallVector<llvm::StringRef>(names.begin(), names.end());
    };
    return create_region_function(builder_, row_.getLoc(), name, type, refs(argument_names), refs(result_names));
  }

  void fill(mlir::func::FuncOp function, const Slice& slice, const Values& arguments, mlir::ValueRange results) {
    mlir::Block* block = function.addEntryBlock();
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(block);
    mlir::IRMapping mapping;
    for (const auto& [from, to] : llvm::zip(arguments, block->getArguments())) mapping.map(from, to);
    slice.copy_to(builder, mapping);
    Values copies;
    for (const Value result : results) {
      auto splat = result.getDefiningOp<hstu::SplatOp>();
      copies.push_back(mapping.lookup(splat ? splat.getValue() : result));
    }
    mlir::func::ReturnOp::create(builder, row_.getLoc(), copies);
  }

  // Inputs in their order, random numbers, then statistics.
  Values ordered(const Slice& slice) const {
    Values arguments;
    for (const mlir::BlockArgument argument : body_.getArguments()) {
      if (slice.arguments().contains(argument)) arguments.push_back(argument);
    }
    for (auto random : body_.getOps<hstu::RandomOp>()) {
      if (slice.arguments().contains(random)) arguments.push_back(random);
    }
    for (const auto& statistics : statistics_) {
      for (const Value value : statistics) {
        if (slice.arguments().contains(value)) arguments.push_back(value);
      }
    }
    return arguments;
  }

  mlir::SmallVector<std::string> names_of(mlir::ValueRange values) {
    mlir::SmallVector<std::string> names;
    for (const Value value : values) names.push_back(names_.of(value));
    return names;
  }

  void emit(llvm::StringRef name, const Slice& slice, mlir::ValueRange results,
            mlir::ArrayRef<std::string> result_names) {
    const Values arguments = ordered(slice);
    mlir::func::FuncOp function = create(name, arguments, names_of(arguments), result_names);
    for (const auto& [i, argument] : llvm::enumerate(arguments)) {
      if (auto random = argument.getDefiningOp<hstu::RandomOp>())
        set_row_random(function, static_cast<unsigned>(i),
                       {names_.of(random), names_.of(random.getSeed()), names_.of(random.getOffset()),
                        static_cast<int64_t>(random.getColumns()), static_cast<int64_t>(random.getFirst())});
    }
    fill(function, slice, arguments, results);
  }

  void emit_statistics(unsigned round) {
    const Slice slice = numbers_of(round);
    Values arguments;
    mlir::SmallVector<std::string> names;
    for (const auto& [i, sum] : llvm::enumerate(sums_[round])) {
      arguments.push_back(sum.getResult());
      names.push_back(row_sum_name(static_cast<unsigned>(i)));
    }
    for (const Value value : ordered(slice)) {
      if (llvm::is_contained(arguments, value)) continue;
      arguments.push_back(value);
      names.push_back(names_.of(value));
    }
    const Values results(statistics_[round].begin(), statistics_[round].end());
    fill(create(row_statistics_name(round), arguments, names, names_of(results)), slice, arguments, results);
  }

  bool is_unused_input(llvm::StringRef name) {
    for (const auto& [i, input] : llvm::enumerate(row_.getInputs().getAsRange<hstu::OperandAttr>())) {
      if (input.getName() == name) return body_.getArgument(static_cast<unsigned>(i)).use_empty();
    }
    return false;
  }

  // As it is, but for rows that nothing reads: it is done once a row.
  void emit_index() {
    if (!row_.getFound()) return;
    mlir::Region& index = row_.getIndex();
    auto end = mlir::cast<hstu::YieldOp>(index.front().getTerminator());
    mlir::SmallVector<llvm::StringRef> found;
    Values rows;
    for (const auto& [name, row] : llvm::zip(row_.getFound()->getAsValueRange<mlir::StringAttr>(), end.getValues())) {
      if (is_unused_input(name)) continue;
      found.push_back(name);
      rows.push_back(row);
    }
    end.getValuesMutable().assign(rows);
    const auto type = builder_.getFunctionType(index.front().getArgumentTypes(), end.getValues().getTypes());
    mlir::func::FuncOp function =
        create_region_function(builder_, row_.getLoc(), kRowIndex, type, {"sequence", "position"}, found);
    function.getBody().takeBody(index);
    mlir::OpBuilder at_end(end);
    mlir::func::ReturnOp::create(at_end, end.getLoc(), end.getValues());
    end.erase();
  }

  hstu::RowOp row_;
  mlir::Block& body_;
  Depths depths_;
  Names names_;
  mlir::OpBuilder builder_;
  std::vector<std::vector<hstu::ReduceOp>> sums_;   // of each round
  std::vector<llvm::SetVector<Value>> statistics_;  // known after it, and used later
};

struct CutRows : mlir::PassWrapper<CutRows, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CutRows)
  llvm::StringRef getArgument() const final { return "hstu-cut-rows"; }
  llvm::StringRef getDescription() const final { return "turn hstu.row into functions of single elements"; }
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    registry.insert<mlir::func::FuncDialect>();
  }

  void runOnOperation() override {
    for (auto row : llvm::make_early_inc_range(getOperation().getOps<hstu::RowOp>())) {
      Cutter(row).cut();
      row.erase();
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_cut_rows_pass() { return std::make_unique<CutRows>(); }

}  // namespace hstujit
