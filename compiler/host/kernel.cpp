#include "compiler/host/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "compiler/host/packed_arguments.h"
#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/support/integers.h"
#include "compiler/support/parallel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hstujit {

namespace {

constexpr llvm::StringLiteral kItemFunction = "compute_item";

const HostFamilyEntry* find_family(Family family) {
  const auto& entries = host_families();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.family == to_string(family); });
  return found == entries.end() ? nullptr : &*found;
}

mlir::Type argument_type(mlir::Builder& builder, const Argument& argument) {
  if (argument.kind == ArgumentKind::kFloat) return builder.getF32Type();
  if (argument.kind == ArgumentKind::kInt) return builder.getIndexType();
  const auto rank = static_cast<int64_t>(argument.shape.size());
  llvm::SmallVector<int64_t> strides(rank, mlir::ShapedType::kDynamic);
  strides.back() = 1;
  const auto layout = mlir::StridedLayoutAttr::get(builder.getContext(), 0, strides);
  return mlir::MemRefType::get(llvm::SmallVector<int64_t>(rank, mlir::ShapedType::kDynamic),
                               storage_type(builder, argument.dtype), layout);
}

// compute_item(arguments of the signature..., coordinates..., scratch, parts). Returns the number of fp32 values of
// scratch.
Result<int64_t> emit_item_function(mlir::ModuleOp module, const Signature& signature, HostOperator& op,
                                   const RegisterTile& tile) {
  mlir::OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  llvm::SmallVector<mlir::Type> types;
  for (const Argument& argument : signature) types.push_back(argument_type(builder, argument));
  types.append(WorkItem::kCoordinates, builder.getIndexType());
  types.append(2, mlir::MemRefType::get({mlir::ShapedType::kDynamic}, builder.getF32Type()));

  const mlir::Location location = builder.getUnknownLoc();
  auto function = mlir::func::FuncOp::create(builder, location, kItemFunction, builder.getFunctionType(types, {}));
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Emitter emit(builder, location, tile);
  ItemFunction item{.emit = emit, .regions = module, .arguments = {}, .coordinates = {}, .parts = {}};
  unsigned next = 0;
  for (const Argument& argument : signature) item.arguments.emplace(argument.name, body->getArgument(next++));
  for (mlir::Value& coordinate : item.coordinates) coordinate = body->getArgument(next++);
  emit.set_scratch(body->getArgument(next++));
  item.parts = body->getArgument(next);
  HSTUJIT_RETURN_IF_ERROR(op.emit(item));
  mlir::func::ReturnOp::create(builder, location);

  // The regions were emitted in place; their functions would only cost compile time.
  for (auto other : llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>())) {
    if (other != function) other.erase();
  }
  return emit.scratch_size();
}

struct FreeScratch {
  void operator()(float* memory) const { std::free(memory); }
};
using Scratch = std::unique_ptr<float, FreeScratch>;

// Zeroed: padding that an operator never writes then holds no NaN.
Scratch allocate_scratch(int64_t size) {
  constexpr size_t kAlignment = 64;
  const size_t bytes = round_up(static_cast<size_t>(size) * sizeof(float), kAlignment);
  auto* memory = static_cast<float*>(std::aligned_alloc(kAlignment, std::max(bytes, kAlignment)));
  if (memory != nullptr) std::fill_n(memory, size, 0.0F);
  return Scratch(memory);
}

// An item, or those of a chain in their order.
struct Turn {
  size_t begin, end;  // of items
  double cost = 0;
};

// The items [begin, end), of which it brings those of chains together.
std::vector<Turn> turns_of(std::vector<WorkItem>& items, size_t begin, size_t end) {
  std::stable_sort(items.begin() + static_cast<ptrdiff_t>(begin), items.begin() + static_cast<ptrdiff_t>(end),
                   [](const WorkItem& a, const WorkItem& b) { return a.chain < b.chain; });
  std::vector<Turn> turns;
  for (size_t i = begin; i < end; ++i) {
    if (i == begin || items[i].chain < 0 || items[i].chain != items[i - 1].chain) turns.push_back({i, i});
    turns.back().end = i + 1;
    turns.back().cost += items[i].cost;
  }
  // Stable, so that equal costs keep neighbours in memory together.
  std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.cost > b.cost; });
  return turns;
}

}  // namespace

Result<JitKernel> JitKernel::create(OpSpecPtr spec, Direction direction, int threads, const KeptFiles& objects,
                                    std::optional<RegisterTile> tile) {
  const auto context = make_context();
  prepare_context(*context);
  HSTUJIT_ASSIGN_OR_RETURN(const Module module, build_module(*context, *spec));
  return create(*module, std::move(spec), direction, threads, objects, tile);
}

Result<JitKernel> JitKernel::create(mlir::ModuleOp module, OpSpecPtr spec, Direction direction, int threads,
                                    const KeptFiles& objects, std::optional<RegisterTile> given_tile) {
  const HostFamilyEntry* entry = find_family(spec->family());
  if (entry == nullptr) {
    return Status(Code::kUnsupported, fmt::format("the host backend does not compute operator {}", spec->op()));
  }
  HSTUJIT_ASSIGN_OR_RETURN(HostTarget target, HostTarget::detect());
  const RegisterTile tile = given_tile.value_or(target.register_tile());
  HSTUJIT_ASSIGN_OR_RETURN(HostOperatorPtr op, entry->make(spec, direction, tile));
  HSTUJIT_RETURN_IF_ERROR(run_passes(module, direction));
  Signature signature = spec->signature(direction);
  HSTUJIT_ASSIGN_OR_RETURN(const int64_t scratch_size, emit_item_function(module, signature, *op, tile));
  HSTUJIT_ASSIGN_OR_RETURN(JitFunction function, JitFunction::compile(module, kItemFunction, target, objects));
  return JitKernel(std::move(signature), std::move(op), std::move(function), scratch_size,
                   threads > 0 ? threads : available_threads());
}

Status JitKernel::launch(const HstujitHostValue* values, size_t count) const {
  HSTUJIT_ASSIGN_OR_RETURN(const Arguments arguments, Arguments::bind(signature_, values, count));
  HSTUJIT_ASSIGN_OR_RETURN(std::vector<WorkItem> items, operator_->items(arguments));
  std::vector<float> parts(static_cast<size_t>(operator_->parts_size(arguments)));
  const auto others =
      std::stable_partition(items.begin(), items.end(), [](const WorkItem& item) { return item.first; });
  const auto first = static_cast<size_t>(others - items.begin());
  const std::vector<Turn> rounds[] = {turns_of(items, 0, first), turns_of(items, first, items.size())};
  const size_t most = std::max(rounds[0].size(), rounds[1].size());
  const int threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(threads_), most));
  std::vector<Scratch> scratch;
  std::vector<PackedArguments> packed;
  for (int i = 0; i < threads; ++i) {
    scratch.push_back(allocate_scratch(scratch_size_));
    if (scratch.back() == nullptr) {
      return Status(Code::kOutOfMemory, fmt::format("no memory for {} bytes of scratch on each of {} threads",
                                                    scratch_size_ * static_cast<int64_t>(sizeof(float)), threads));
    }
    packed.emplace_back(arguments, std::span(scratch.back().get(), static_cast<size_t>(scratch_size_)), parts);
  }
  for (const std::vector<Turn>& turns : rounds) {
    parallel_for(turns.size(), threads, [&](int worker, size_t i) {
      for (size_t item = turns[i].begin; item < turns[i].end; ++item) function_(packed[worker].with(items[item]));
    });
  }
  operator_->finish(arguments, parts.data());
  return Status();
}

}  // namespace hstujit
