// OpSpec: the problem. One of the three value types that select a kernel (with KernelConfig and DeviceSpec).
//
// An operator is one folder (compiler/spec/operators/<op>/): its parameters, its signature, its cost in FLOPs and
// bytes, and beside them its float64 reference. Specs are immutable once parsed and hold no lengths and no pointers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/spec/family.h"
#include "compiler/spec/signature.h"
#include "compiler/spec/types.h"
#include "compiler/support/status.h"

namespace hstujit {

// The axis of the sequences' rows.
inline constexpr std::string_view kSequenceAxis = "L";

// Row counts of the sequences of one batch, and what else a problem's size depends on.
struct Lengths {
  std::vector<int64_t> rows;         // per sequence, >= 0: of kSequenceAxis
  std::vector<int64_t> num_targets;  // per sequence, in [0, rows]; empty when the op takes none
  int64_t max_seq_len = 0;           // >= every entry of rows
  // Per sequence, the rows of every other axis that is cut at sequences, by its symbol. Those of kQueryAxis, which are
  // the sequence's last ones, may be more than it has.
  std::map<std::string, std::vector<int64_t>, std::less<>> other_rows = {};
  std::vector<int64_t> num_contexts = {};  // as num_targets

  // What the sequences have of an argument of counts, by its name.
  std::vector<int64_t>& counts_of(std::string_view argument);
  const std::vector<int64_t>& counts_of(std::string_view argument) const;
  // Per sequence; empty for an axis that the operator does not have.
  const std::vector<int64_t>& rows_of(std::string_view axis) const;
  int64_t total_rows(std::string_view axis = kSequenceAxis) const;  // sum of rows_of
};

// Rows of a sequence of a generated call: rows of L, and those of the operator's other axes, by symbol.
struct GeneratedRows {
  int64_t rows = 0;
  std::vector<std::pair<std::string, int64_t>> others = {};
};

// Where sequences of so many rows begin, one after the other, and where the last one ends.
std::vector<int64_t> offsets_of(const std::vector<int64_t>& rows);

// Least work of one call: for ceilings and ratios in reports.
struct Work {
  double flops = 0;  // multiply and add counted separately, valid (row, column) pairs only
  double bytes = 0;  // every input read once, every output written once
};

// One argument's value in host memory, in float64 or int64 whatever the device dtype is.
struct HostTensor {
  std::vector<int64_t> shape;
  std::vector<double> reals;      // floating-point tensors
  std::vector<int64_t> integers;  // integer tensors
};

// One value per signature argument: a tensor, or a scalar in `scalar`.
struct HostValue {
  HostTensor tensor;
  double scalar = 0;
};

struct Program;

class OpSpec {
 public:
  virtual ~OpSpec() = default;

  virtual std::string_view op() const = 0;  // "hstu_attention"
  virtual Family family() const = 0;
  virtual nlohmann::ordered_json to_json() const = 0;  // canonical: every field, in field order, with "op" first
  // Whether this operator has that direction; the functions below may be called for it only then, but for work().
  virtual bool supports(Direction direction) const = 0;
  // An integer parameter that alone leaves no such direction, and the most that would. Empty where there is none.
  struct Limit {
    std::string parameter;
    int64_t most;
  };
  virtual std::optional<Limit> limit_of(Direction) const { return {}; }
  virtual Signature signature(Direction direction) const = 0;
  // The steps of an operator that is a program of others; null where it has kernels of its own (program.h).
  virtual const Program* program(Direction) const { return nullptr; }
  virtual Work work(Direction direction, const Lengths& lengths) const = 0;

  // Tiles that each 64 rows of a sequence make, one for each head, where small batches have kernels of their own
  // (small_batch.h); 0 where they have none.
  virtual int64_t small_batch_heads(Direction) const { return 0; }

  // Instances whose fastest kernels are nearly as fast for this one as its own, the nearest first: of attention those
  // with another number of heads.
  struct TunedAlike {
    std::shared_ptr<const OpSpec> spec;
    std::string difference;  // "4 heads"
  };
  virtual std::vector<TunedAlike> tuned_alike() const { return {}; }

  // A sentence about what kernels make of the instance, which its parameters do not show; empty: there is none.
  virtual std::string note() const { return {}; }

  // Rows of a sequence for which `drawn` rows were drawn.
  virtual GeneratedRows generated_rows(int64_t /*sequence*/, int64_t drawn, int64_t /*max_seq_len*/) const {
    return {drawn};
  }
  // Sizes in generated calls that no lengths tell, by symbol: rows of tables.
  virtual std::map<std::string, int64_t> generated_sizes(const Lengths&) const { return {}; }

  // Largest allowed ||out - ref|| / ||ref|| for this dtype and direction (docs/ops.md, "Numerics").
  virtual double error_bound(Direction direction) const = 0;

  // Data and bounds for checks of results. These three look up the reference of the operator in a table of the build
  // (reference.h), so a program that calls none of them links no reference.

  // Random inputs for the given lengths, rounded to the spec's data type; outputs are left empty.
  std::vector<HostValue> make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const;
  // Fills the outputs of `values` in float64 from its inputs. Independent of the IR and of every template.
  void reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;
  // The variance of each element's error, by argument, that the roundings of an implementation may cause on these
  // inputs, but for the last one, to the output's type (docs/numerics.md). Of the `sequences` of the batch that are
  // true, of all where that is empty; elements of others are 0. Empty: not known, and error_bound() alone counts.
  std::vector<std::vector<double>> error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                   const std::vector<bool>& sequences) const;
};

using OpSpecPtr = std::shared_ptr<const OpSpec>;

class Mistakes;

// Parses and validates one operator instance: `json` holds "op" and that operator's parameters only. `path` (a JSON
// path such as "ops[2]") stands in front of the fields in sentences. Null where there are mistakes.
OpSpecPtr parse_op_spec(const nlohmann::ordered_json& json, const std::string& path, Mistakes& mistakes);
// The same for what programs have written: fails with the first mistake. kInvalidConfig.
Result<OpSpecPtr> parse_op_spec(const nlohmann::ordered_json& json, const std::string& path);

// That this instance lacks a direction, for sentences: "split_2d_jagged with left_only=true has no backward kernel;
// allowed: "forward", or left_only=false". Named are a parameter that at its default would leave the direction there,
// and that of limit_of().
std::string without_direction(const OpSpec& spec, Direction direction);

// The spec in keys: compact JSON of "op" and the parameters that differ from their defaults, in field order. A
// parameter that is added to an operator leaves the text, and so every stored tuning record, of a spec that does not
// use it; for the same reason a default never changes. parse_op_spec reads it.
std::string key_text(const OpSpec& spec);

// Names of all operators, in alphabetical order.
std::vector<std::string_view> operator_names();
bool is_operator(std::string_view name);
// That `value`, at `place`, names no operator: kInvalidConfig, with the nearest name and all that there are.
Status unknown_operator(const std::string& place, const nlohmann::ordered_json& value);

// JSON Schema of one operator's parameters: an object with "properties" and "required", "op" left out.
// `op` must be one of operator_names().
nlohmann::ordered_json operator_schema(std::string_view op);
// An instance of it, which every operator has: what must be given has the smallest value.
Result<OpSpecPtr> smallest_op_spec(std::string_view op);

}  // namespace hstujit
