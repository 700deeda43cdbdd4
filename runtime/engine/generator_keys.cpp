#include "runtime/engine/generator_keys.h"

#include <algorithm>
#include <vector>

#include "compiler/generator/generator_digest.h"
#include "compiler/plan/skeleton.h"
#include "compiler/support/hash.h"

namespace hstujit {

namespace {

// Digest of the skeletons that an operator has for a direction, in an order that does not depend on their names.
template <typename DigestOf>
std::string digest_of_skeletons(const char* schema, const OpSpec& spec, Direction direction,
                                const DigestOf& digest_of) {
  std::vector<std::string> digests;
  for (const Skeleton* skeleton : skeletons()) {
    if (skeleton->serves(spec, direction)) digests.emplace_back(digest_of(skeleton->entry_file()));
  }
  std::sort(digests.begin(), digests.end());
  KeyHasher hasher(schema);
  for (const std::string& digest : digests) hasher.add("skeleton", digest);
  return hasher.finish();
}

}  // namespace

std::string kernel_generator(std::string_view op, const KernelConfig& config) {
  const Result<const Skeleton*> skeleton = find_skeleton(config.skeleton);
  return kernel_generator(op, skeleton.ok() ? (*skeleton)->entry_file() : std::string());
}

std::string choice_generator(const OpSpec& spec, Direction direction) {
  return digest_of_skeletons("hstujit-choice-generator", spec, direction,
                             [&](std::string_view entry) { return kernel_generator(spec.op(), entry); });
}

std::string choice_estimates(const OpSpec& spec, Direction direction) {
  // The number is raised when another one of the same estimates would be taken (runtime/dispatch/kernel_supply.cpp).
  return digest_of_skeletons("hstujit-choice-estimates-2", spec, direction,
                             [](std::string_view entry) { return estimates_digest(entry); });
}

}  // namespace hstujit
