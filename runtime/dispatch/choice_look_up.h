// The look-ups that a choice is made by, in the order of docs/cache-format.md: kernel_choice.cpp calls them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/dispatch/kernel_choice.h"

namespace hstujit {

// The problem that a kernel is wanted for.
struct Wanted {
  const OpSpec& spec;
  Direction direction;
  const DeviceSpec& device;
  const ProblemBucket bucket;
  const Restriction& restriction;
  Keep keep;

  std::vector<TuningKey> keys(const DeviceSpec& recorded_on) const {
    return serving_keys(spec, direction, recorded_on, bucket, restriction);
  }
  // The same for the bucket's other batches.
  std::optional<Wanted> other_batches() const;
};

// Why the config of a look-up cannot be used; empty when it can.
inline std::string refusal(const Wanted& wanted, const KernelConfig& config) {
  return config_refusal(wanted.spec, wanted.direction, wanted.device, wanted.restriction, config);
}

// The winner of the wanted device, or what a bundle says of it.
std::optional<KernelChoice> decided_choice(Engine& engine, const Wanted& wanted);

// The winner of another key, the nearest that has one: of an instance that is tuned alike, or of another device.
std::optional<KernelChoice> borrowed_choice(Engine& engine, const Wanted& wanted);

// For a bucket of which nothing is known but what its other batches have: that, unless the cost model's estimates
// differ from it in whether the kernel is one for short sequences. That is what tells the classes apart, and worth more
// than the rest of a config that was measured on other lengths. Where the kernel of the estimate is out of reach, the
// other batches' serves, if it is there: whoever prewarmed may have known no such class.
Result<KernelChoice> untuned_choice(Engine& engine, const Wanted& wanted);

}  // namespace hstujit
