#include "compiler/generator/generator_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/hash.h"

namespace hstujit {

namespace {

const SkeletonDigests* find_skeleton_digests(std::string_view entry) {
  const auto& table = skeleton_digests();
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.entry == entry; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

Status check_generator(std::string_view what, std::string_view found) {
  if (found == generator_digest()) return {};
  const std::string its =
      found.empty() ? "is of an older build, which names no generator" : fmt::format("has the generator {}", found);
  return Status(Code::kNoCompiler, fmt::format("{} {}; this libhstujit goes by the generator {}, install both from one "
                                               "build",
                                               what, its, generator_digest()));
}

std::string kernel_generator(std::string_view op, std::string_view entry) {
  const auto& operators = operator_digests();
  const auto found = std::find_if(operators.begin(), operators.end(), [&](const auto& row) { return row.op == op; });
  const SkeletonDigests* skeleton = find_skeleton_digests(entry);
  if (found == operators.end() || skeleton == nullptr) return std::string(generator_digest());
  KeyHasher hasher("hstujit-kernel-generator");
  hasher.add("operator", found->source).add("skeleton", skeleton->source);
  return hasher.finish();
}

std::string_view estimates_digest(std::string_view entry) {
  const SkeletonDigests* skeleton = find_skeleton_digests(entry);
  return skeleton == nullptr ? std::string_view() : skeleton->estimates;
}

}  // namespace hstujit
