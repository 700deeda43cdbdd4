// One problem instance with data: inputs as a kernel sees them, poisoned outputs, and the float64 answer.
//
// Outputs are filled with bytes 0xFF, a NaN in every floating-point type: an element that a kernel leaves out shows.
// Jagged axes get extra rows after the last sequence, which a kernel must neither use nor write, unless every row of
// the operator's counts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "compiler/spec/batch.h"
#include "compiler/spec/op_spec.h"
#include "compiler/spec/sequence_rows.h"
#include "operations/tuning/data/data_memory.h"
#include "runtime/launch/arguments.h"

namespace hstujit {

inline constexpr unsigned char kPoison = 0xFF;

struct ProblemData {
  OpSpecPtr spec;
  Direction direction = Direction::kForward;
  Lengths lengths;
  Signature signature;
  int64_t extra_rows = 0;

  std::vector<HostValue> values;               // as OpSpec::make_inputs gave them
  std::vector<std::vector<int64_t>> shapes;    // by argument, extra rows included; empty for scalars
  std::vector<std::vector<std::byte>> images;  // by argument, packed; outputs are poison
  std::vector<size_t> sizes;                   // by argument, bytes that its image is repeated to; empty: its own
  std::vector<std::vector<int64_t>> strides;   // by argument, in elements; empty, or empty for one: contiguous
  std::vector<size_t> offsets;                 // by argument, bytes before the first element; empty: none
};

// make_lengths, unless the machine has no room for the data of the batch: kOutOfMemory then, before anything is drawn.
Result<Lengths> draw_lengths(const Instance& instance, Direction direction, int64_t max_seq_len, DrawnFor use,
                             int64_t max_rows = kAllRows);

// Tensors are contiguous, but for rows that would not begin at a multiple of the argument's alignment.
//
// kInternal when the spec's inputs do not determine a shape, kOutOfMemory when they are more than the machine holds.
// `extra_rows` counts only for jagged axes. `alpha` is the value of the real argument of that name, where the operator
// has one, in place of the spec's own.
Result<ProblemData> make_problem_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                      int64_t extra_rows, std::optional<double> alpha = {});

// The same for timing only: the float64 answer is not to be had. Data rows, and tensors that have a part for each
// sequence, repeat those of the first few sequences (`sizes`), because drawing hundreds of millions of random numbers
// would take longer than tuning.
Result<ProblemData> make_timing_data(OpSpecPtr spec, Direction direction, const Lengths& lengths, uint64_t seed,
                                     std::optional<double> alpha = {});

// The values of a launch over memory that somebody else owns.
class LaunchValues {
 public:
  // `data` holds one address per argument; those of scalars are ignored.
  LaunchValues(const ProblemData& problem, const std::vector<void*>& data, DLDevice device);
  LaunchValues(LaunchValues&&) = default;

  const hstujit_value* values() const { return values_.data(); }
  size_t count() const { return values_.size(); }

 private:
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<DLTensor> tensors_;
  std::vector<hstujit_value> values_;
};

// The outputs of the float64 reference, by argument.
std::vector<HostValue> reference_outputs(const ProblemData& problem);

struct Agreement {
  double error = 0;      // largest error of an output (compiler/spec/closeness.h)
  double bound = 0;      // what the spec allows
  std::string sentence;  // empty when everything is as it must be

  bool good() const { return sentence.empty(); }
};

// Compares outputs, as bytes by argument with the strides of `problem`, with the reference: reals as
// compiler/spec/closeness.h says, integers for equality.
Agreement compare(const ProblemData& problem, const std::vector<HostValue>& reference,
                  const std::vector<std::vector<std::byte>>& outputs);

}  // namespace hstujit
