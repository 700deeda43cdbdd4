// Digests of the sources that decide what is generated: what makes one build's kernels those of another.
//
// The key of a cubin has kernel_generator(): it changes with the skeleton's templates and host code, the operator's
// parameters and IR, the passes, the emitter and LLVM's version, and with nothing else. A reference, a cost constant, a
// comment or another skeleton leaves it. source_digest.h says which files those are; the tables are made at build time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct SkeletonDigests {
  std::string_view entry;      // Skeleton::entry_file()
  std::string_view device;     // of its templates, flattened and without comments
  std::string_view source;     // of all that decides its source, but for the operator's part
  std::string_view estimates;  // of what decides its space and its estimates
};
const std::vector<SkeletonDigests>& skeleton_digests();

struct OperatorDigest {
  std::string_view op;
  std::string_view source;
};
const std::vector<OperatorDigest>& operator_digests();

// 64 hexadecimal digits each.
//
// Digest of all skeletons and operators. Libraries and programs of one build compare theirs when one opens the other:
// equal ones have every kernel_generator() in common, and every field of a spec.
std::string_view generator_digest();
// kNoCompiler when `found`, which `what` says of itself, is another one. Empty: it says none.
Status check_generator(std::string_view what, std::string_view found);
// Digest of the kernels of one operator by the skeleton with that entry file. A skeleton that the build does not know,
// such as a test's, has the digest of all.
std::string kernel_generator(std::string_view op, std::string_view entry);
// Digest of the cost model's code for them; empty for a skeleton that the build does not know.
std::string_view estimates_digest(std::string_view entry);

std::string_view library_version();  // "0.1.0"

}  // namespace hstujit
