// How an operator is computed on the host: the interface behind which a new family of operators arrives.
//
// An operator is cut into work items that write disjoint parts of the outputs and read only inputs, so they may run in
// any order and on any thread with the same result; what they have to add up is left to one call at the end. Items that
// add to the same numbers form a chain, which keeps their order. What many items need to know, others may find out
// first.
// compiler/host/families/<family>/ defines make_host_<family>, for every operator of it; CMake lists them by glob.
// Everything else (checking arguments, code generation, threads, the C boundary) is common to all.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "compiler/host/arguments.h"
#include "compiler/host/emitter.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/status.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

struct WorkItem {
  static constexpr size_t kCoordinates = 12;
  std::array<int64_t, kCoordinates> coordinates{};  // what they mean is the operator's own matter
  double cost = 0;                                  // relative; the most expensive items start first
  int64_t chain = -1;  // items of the same one follow one another, in the order in which they are listed; -1: of none
  bool first = false;  // item that comes before all others, which read what such items leave for them
};

// The function under construction that computes one work item.
struct ItemFunction {
  Emitter& emit;
  // The passes' functions over the operator's regions.
  mlir::ModuleOp regions;
  // Tensors are memrefs of storage_type, kFloat is f32, kInt is index.
  std::map<std::string_view, mlir::Value> arguments;
  std::array<mlir::Value, WorkItem::kCoordinates> coordinates;
  mlir::Value parts;  // HostOperator::parts_size() fp32 values that all items of a launch share

  mlir::Value argument(std::string_view name) const { return arguments.at(name); }
};

class HostOperator {
 public:
  virtual ~HostOperator() = default;
  // Writes the body of the item function at the emitter's place. Called once.
  virtual Status emit(ItemFunction& function) = 0;
  // The items of one launch. Whatever the tensors of indices hold, an item stays within the bounds of the tensors.
  virtual Result<std::vector<WorkItem>> items(const Arguments& arguments) const = 0;

  // For outputs that several items have a share in: the number of fp32 values, 0 at first, that items leave for
  // finish(), each of them written by one item or by those of one chain, and what is done with them when all items are.
  virtual int64_t parts_size(const Arguments&) const { return 0; }
  virtual void finish(const Arguments&, const float*) const {}
};

using HostOperatorPtr = std::unique_ptr<HostOperator>;

struct HostFamilyEntry {
  std::string_view family;
  // kUnsupported for a direction that the host does not compute.
  Result<HostOperatorPtr> (*make)(OpSpecPtr spec, Direction direction, const RegisterTile& tile);
};
const std::vector<HostFamilyEntry>& host_families();

}  // namespace hstujit
