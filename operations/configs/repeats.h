// Launches on the same inputs, compared byte by byte with the first of them.
#pragma once

#include "operations/configs/operation.h"

namespace hstujit {

using Outputs = std::vector<std::vector<std::byte>>;  // by argument; of inputs, nothing that counts

// How further launches compare with the first.
struct Repeats {
  Signature signature;
  int launches = 1;                                                 // the first included, here and in `equal`
  int equal = 1;                                                    // in every output
  std::vector<int> different = std::vector<int>(signature.size());  // by argument: launches that gave other bytes

  // One more launch; `output` is asked for one output after the other.
  Status add(const Outputs& first, const std::function<Result<std::vector<std::byte>>(size_t argument)>& output);

  // "dq in 3, dv in 1"; empty when all are equal.
  std::string differences() const;
  void write(Json& row) const;  // repeats, repeats_equal, repeats_differ
  // kCheckFailed where launches differ.
  Status must_be_equal() const;
};

// Launches an op that is prepared, and has given `first`, until there are `launches` of it. Outputs are poison before
// each.
Result<Repeats> repeat_on_host(const Op& op, const ProblemData& problem, const Outputs& first, int launches);

// The same in the current context, that of device `ordinal`, with the workspace poisoned, too. Meanwhile another stream
// keeps the multiprocessors busy for twice the time of a launch, `milliseconds`: then blocks begin in another order and
// in other places each time.
Result<Repeats> repeat_on_device(const CudaDriverPtr& driver, int ordinal, const Op& op, const ProblemData& problem,
                                 const Outputs& first, int launches, double milliseconds);

}  // namespace hstujit
