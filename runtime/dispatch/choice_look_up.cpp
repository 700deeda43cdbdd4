#include "runtime/dispatch/choice_look_up.h"

#include <fmt/format.h>

#include "compiler/plan/packed_sequences.h"
#include "compiler/support/json.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/choice_sentences.h"
#include "runtime/engine/generator_keys.h"

namespace hstujit {

std::optional<Wanted> Wanted::other_batches() const {
  const auto other = hstujit::other_batches(spec, direction, bucket, device);
  if (!other) return std::nullopt;
  return Wanted{spec, direction, device, *other, restriction, keep};
}

namespace {

// Whether a config of a record or a choice can be used; it is then in *config. `recorded_on`: the device of its key.
bool is_usable(Engine& engine, const Wanted& wanted, const RecordedConfig& recorded, const DeviceSpec& recorded_on,
               KernelConfig* config) {
  if (recorded.empty()) return false;
  const Result<KernelConfig> parsed = parse_kernel_config(json_or_null(recorded.text()));
  if (parsed.ok()) *config = *parsed;
  const std::string reason = parsed.ok() ? refusal(wanted, *parsed) : parsed.status().message();
  if (reason.empty()) return true;
  engine.log().event(LogCategory::kDispatch, "tuned-config-refused",
                     {{"op", wanted.spec.op()},
                      {"bucket", to_string(wanted.bucket)},
                      {"device", recorded_on.name},
                      {"reason", reason}});
  return false;
}

KernelChoice choice_of(const DeviceSpec& device, KernelConfig config, const ChoiceRecord& record) {
  KernelChoice choice;
  choice.config = std::move(config);
  choice.source = record.source;
  choice.tuned = record.exported && !is_guess(record.source);
  choice.nearest = record.device;
  choice.passed_over = record.passed_over;
  choice.exported = record.exported;
  choice.remembered = true;
  const bool estimated = !record.exported && record.source == ChoiceSource::kHeuristic;
  choice.why = estimated ? heuristic_why(device, choice) : earlier_why(device, choice);
  return choice;
}

}  // namespace

std::optional<KernelChoice> decided_choice(Engine& engine, const Wanted& wanted) {
  KernelConfig winner, exported;
  const auto usable_record = [&](const TuningRecord& record) {
    return is_usable(engine, wanted, record.winner, wanted.device, &winner);
  };
  const auto usable_choice = [&](const ChoiceRecord& choice) {
    // Passes over what was forced upon a process, which another one does not want; bundles of earlier libraries have
    // it.
    return kind_of(choice.source) != ChoiceKind::kOverride &&
           is_usable(engine, wanted, choice.config, wanted.device, &exported);
  };
  const std::string generator = choice_generator(wanted.spec, wanted.direction);
  for (const TuningKey& key : wanted.keys(wanted.device)) {
    const auto decision = engine.tuning().decide(key, generator, usable_record, usable_choice, wanted.keep);
    if (!decision) continue;
    if (decision->choice) return choice_of(wanted.device, std::move(exported), *decision->choice);
    KernelChoice choice;
    choice.config = std::move(winner);
    choice.source = ChoiceSource::kTuning;
    choice.tuned = true;
    choice.why = winner_why(*decision->record);
    return choice;
  }
  return std::nullopt;
}

namespace {

// Leaves out what was forced upon a process, and what another cost model chose.
bool counts_here(const Wanted& wanted, const ChoiceRecord& noted) {
  switch (kind_of(noted.source)) {
    case ChoiceKind::kOverride:
    case ChoiceKind::kFrozen:
      return false;
    case ChoiceKind::kTuned:
      return true;
    case ChoiceKind::kBorrowed:
      return noted.source == ChoiceSource::kNearDevice;  // others are looked up anew
    case ChoiceKind::kEstimated:
      return noted.exported || noted.estimates == choice_estimates(wanted.spec, wanted.direction);
  }
  return false;
}

// Where no record has anything to say: what was noted when one had, or when kernels of the cost model's estimates were
// looked at; else the first estimate.
Result<KernelChoice> estimated_choice(Engine& engine, const Wanted& wanted) {
  const auto noted =
      engine.tuning().noted_choice(wanted.keys(wanted.device).front(), choice_generator(wanted.spec, wanted.direction));
  KernelChoice choice;
  if (noted && counts_here(wanted, *noted) && is_usable(engine, wanted, noted->config, wanted.device, &choice.config)) {
    return choice_of(wanted.device, std::move(choice.config), *noted);
  }
  HSTUJIT_ASSIGN_OR_RETURN(choice.config, heuristic_config(wanted.spec, wanted.direction, wanted.device,
                                                           heuristic_size(wanted.bucket), wanted.restriction));
  choice.why = heuristic_why(wanted.device, choice);
  return choice;
}

// Whether a cache has the kernel.
bool is_there(Engine& engine, const Wanted& wanted, const KernelConfig& config) {
  const OpSpecPtr borrowed(OpSpecPtr(), &wanted.spec);
  return engine.kernels().peek({borrowed, wanted.direction, config, wanted.device, engine.lineinfo()}) != nullptr;
}

// Whether this process can have no kernel of that config: no cache has it, and nothing may, or can, compile it.
bool is_out_of_reach(Engine& engine, const Wanted& wanted, const KernelConfig& config) {
  return !is_there(engine, wanted, config) && (engine.on_miss() == MissPolicy::kFail || !engine.compiler().ok());
}

// Keys whose winner another key takes while it has none of its own.
struct Lender {
  ChoiceSource source;
  DeviceSpec device;  // of the keys
  std::vector<TuningKey> keys;
  std::string why;  // the sentence that ends in what the record says
};

// Which source an instance is that differs in the value of this parameter.
struct Difference {
  const char* parameter;
  ChoiceSource source;
};
constexpr Difference kDifferences[] = {{"heads", ChoiceSource::kOtherHeads},
                                       {"seed_tensor", ChoiceSource::kOtherSeed},
                                       {"row_numbers", ChoiceSource::kOtherSeed},
                                       {"adds_gradients", ChoiceSource::kOtherGradients}};

ChoiceSource source_of(const OpSpec& spec, const OpSpec& other) {
  const Json own = spec.to_json(), its = other.to_json();
  for (const auto& [parameter, source] : kDifferences) {
    if (own.value(parameter, Json()) != its.value(parameter, Json())) return source;
  }
  return ChoiceSource::kOtherHeads;
}

// Instances of this device that are tuned alike.
std::vector<Lender> lenders_alike(const Wanted& wanted) {
  std::vector<Lender> lenders;
  for (const OpSpec::TunedAlike& other : wanted.spec.tuned_alike()) {
    lenders.push_back({source_of(wanted.spec, *other.spec), wanted.device,
                       serving_keys(*other.spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction),
                       fmt::format("untuned; with {}, ", other.difference)});
  }
  return lenders;
}

// Other devices of the architecture, the nearest first.
std::vector<Lender> near_devices(const Wanted& wanted) {
  const DeviceSpec& device = wanted.device;
  std::vector<Lender> lenders;
  for (const DeviceSpec& other : nearest_devices(device)) {
    lenders.push_back({ChoiceSource::kNearDevice, other, wanted.keys(other),
                       fmt::format("untuned on {} ({} multiprocessors); on {} ({}), the nearest device with a record, ",
                                   device.name, device.sm_count, other.name, other.sm_count)});
  }
  return lenders;
}

// A guess, as the cost model's is, but one that was measured. A kernel of the cost model's that is there is better than
// none, so an instance that is tuned alike lends only what this process can have.
std::optional<KernelChoice> borrow(Engine& engine, const Wanted& wanted, const std::vector<Lender>& lenders) {
  for (const Lender& lender : lenders) {
    const bool other_device = lender.source == ChoiceSource::kNearDevice;
    KernelChoice choice;
    const auto usable = [&](const TuningRecord& record) {
      return is_usable(engine, wanted, record.winner, lender.device, &choice.config);
    };
    for (const TuningKey& key : lender.keys) {
      const auto record = engine.tuning().find(key, usable, wanted.keep);
      if (!record || (!other_device && is_out_of_reach(engine, wanted, choice.config))) continue;
      choice.source = lender.source;
      if (other_device) choice.nearest = lender.device.name;
      choice.why = lender.why + winner_why(*record);
      return choice;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<KernelChoice> borrowed_choice(Engine& engine, const Wanted& wanted) {
  std::optional<KernelChoice> choice = borrow(engine, wanted, lenders_alike(wanted));
  return choice ? choice : borrow(engine, wanted, near_devices(wanted));
}

Result<KernelChoice> untuned_choice(Engine& engine, const Wanted& wanted) {
  Result<KernelChoice> own = estimated_choice(engine, wanted);
  const std::optional<Wanted> others = wanted.other_batches();
  if (!others) return own;
  std::optional<KernelChoice> found = decided_choice(engine, *others);
  if (!found) found = borrow(engine, *others, near_devices(*others));
  const bool differs =
      found && own.ok() && is_for_short_sequences(own->config) != is_for_short_sequences(found->config);
  const auto origin = [&] { return fmt::format("bucket {}: {}", to_string(others->bucket), found->why); };
  if (!found || differs) {
    const bool lacking = own.ok() && is_out_of_reach(engine, wanted, own->config);
    if (lacking && !found) {
      if (Result<KernelChoice> estimate = estimated_choice(engine, *others); estimate.ok())
        found = *std::move(estimate);
    }
    if (!lacking || !found || !is_there(engine, wanted, found->config)) {
      if (!differs) return own;
      own->not_taken = fmt::format("not what other batches have, which is {}for short sequences ({})",
                                   is_for_short_sequences(found->config) ? "" : "not ", origin());
      own->why = heuristic_why(wanted.device, *own);
      return own;
    }
  }
  KernelChoice choice;
  choice.config = std::move(found->config);
  choice.source = ChoiceSource::kOtherBatches;
  choice.nearest = std::move(found->nearest);
  choice.why = fmt::format("untuned for bucket {}: what other batches have, {}", to_string(wanted.bucket), origin());
  return choice;
}

}  // namespace hstujit
