// A call: the instance that arguments of an operator are, and the ops that launch it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/spec/call/output_sizes.h"
#include "compiler/spec/call/resolve.h"
#include "runtime/capi/kept_ops.h"
#include "runtime/capi/op.h"

namespace hstujit::capi {

// The op of one alignment.
struct AlignedOp {
  SharedOp op;
  std::vector<uint64_t> masks;  // by argument: bits of addresses and strides that must be 0
};

// Makes the op at this place of the alignments, unless another thread has.
Result<const AlignedOp*> make_aligned_op(hstujit_call& call, size_t place);

inline constexpr char kCallHandle[] = "a handle of hstujit_call_create";

}  // namespace hstujit::capi

struct hstujit_call {
  const hstujit::CallFunction& function;
  hstujit::EnginePtr engine;
  std::shared_ptr<hstujit::capi::KeptOps> ops;
  hstujit::Backend backend;
  hstujit::Restriction restriction;
  hstujit::ResolvedCall resolved;
  hstujit::OutputSizes sizes;
  std::vector<const hstujit::SizeSymbol*> rows;
  // Values of the parameter, the largest first; one element where there is no parameter.
  std::vector<int64_t> alignments;
  // By alignment; made once, from the largest on.
  std::unique_ptr<std::atomic<hstujit::capi::AlignedOp*>[]> aligned;
  std::mutex making;

  ~hstujit_call() {
    for (size_t at = 0; at < alignments.size(); ++at) delete aligned[at].load();
  }

  const hstujit::Signature& signature() const { return resolved.signature; }
};
