#include "runtime/dispatch/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/plan/packed_sequences.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/engine/generator_keys.h"

namespace hstujit {

namespace {

// What a kernel is wanted for.
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
  std::optional<Wanted> other_batches() const {
    const auto other = hstujit::other_batches(spec, direction, bucket, device);
    if (!other) return std::nullopt;
    return Wanted{spec, direction, device, *other, restriction, keep};
  }
};

// Of the config of a look-up.
std::string refusal(const Wanted& wanted, const KernelConfig& config) {
  return config_refusal(wanted.spec, wanted.direction, wanted.device, wanted.restriction, config);
}

// The same of one that is kept as JSON; *config is filled in when it can be used.
std::string refusal(const Wanted& wanted, const nlohmann::ordered_json& json, KernelConfig* config) {
  const Result<KernelConfig> parsed = parse_kernel_config(json);
  if (!parsed.ok()) return parsed.status().message();
  *config = *parsed;
  return refusal(wanted, *config);
}

// HSTUJIT_OVERRIDE: its fields in place of the choice's. What is wrong whatever they replace, the engine has refused;
// kUnsupported where they do not fit this choice.
Status apply_override(const Engine& engine, const Wanted& wanted, KernelChoice* choice) {
  const Json& patch = engine.override_fields();
  if (patch.is_null()) return {};
  Json json = to_json(choice->config);
  // Of another family, nothing of the choice stays.
  const Result<const Skeleton*> other = find_skeleton(text_member(patch, "skeleton", choice->config.skeleton));
  if (other.ok() && (*other)->family() != choice->config.family()) json = Json::object();
  json.update(patch);
  const Result<KernelConfig> parsed = parse_kernel_config(json, std::string(environment_variable(Env::kOverride).name));
  if (!parsed.ok()) return Status(Code::kUnsupported, parsed.status().message());
  if (const std::string reason = refusal(wanted, *parsed); !reason.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("HSTUJIT_OVERRIDE is {}, which this kernel cannot have: {}", brief_json(patch), reason));
  }
  choice->config = *parsed;
  choice->source = ChoiceSource::kOverride;
  choice->exported = false;
  choice->why = "HSTUJIT_OVERRIDE over " + choice->why;
  return {};
}

// What HSTUJIT_FROZEN says.
Result<KernelChoice> frozen_choice(const FrozenChoices& frozen, const Wanted& wanted) {
  KernelChoice choice;
  const KernelConfig* config = nullptr;
  std::vector<TuningKey> keys = wanted.keys(wanted.device);
  // A file of a library that had one choice for all batches serves both classes.
  if (const auto other = wanted.other_batches())
    std::ranges::copy(other->keys(wanted.device), std::back_inserter(keys));
  for (const TuningKey& key : keys) {
    if (config == nullptr) config = frozen.find(key);
  }
  const std::string_view op = wanted.spec.op(), direction = to_string(wanted.direction);
  if (config == nullptr) {
    const auto nearest = frozen.nearest(keys);
    return Status(Code::kCacheMiss,
                  fmt::format("HSTUJIT_FROZEN is {}, which has no choice for {} {}, bucket {}, on {} ({}, {} "
                              "multiprocessors): {}; make it anew with hstujit freeze, for this device and from a "
                              "config that lists this instance",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name,
                              wanted.device.arch, wanted.device.sm_count,
                              nearest ? "its nearest choice " + nearest->sentence()
                                      : fmt::format("it has none of {} at all", op)));
  }
  const std::string reason = refusal(wanted, to_json(*config), &choice.config);
  if (!reason.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("HSTUJIT_FROZEN is {}, whose choice for {} {}, bucket {}, cannot run on {}: {}",
                              frozen.origin(), op, direction, to_string(wanted.bucket), wanted.device.name, reason));
  }
  choice.source = ChoiceSource::kFrozen;
  choice.tuned = true;
  choice.why = fmt::format("frozen in {}, {}", frozen.origin(), shown_digest(frozen.checksum()));
  return choice;
}

// Whether a config of a record or a choice can be used; it is then in *config. `recorded_on`: the device of its key.
bool is_usable(Engine& engine, const Wanted& wanted, const RecordedConfig& recorded, const DeviceSpec& recorded_on,
               KernelConfig* config) {
  if (recorded.empty()) return false;
  const std::string reason = refusal(wanted, json_or_null(recorded.text()), config);
  if (reason.empty()) return true;
  engine.log().event(LogCategory::kDispatch, "tuned-config-refused",
                     {{"op", wanted.spec.op()},
                      {"bucket", to_string(wanted.bucket)},
                      {"device", recorded_on.name},
                      {"reason", reason}});
  return false;
}

std::string winner_why(const TuningRecord& record) {
  const TimedCandidate* timing = record.timing(record.winner);
  if (timing == nullptr) return "the tuning database's winner";
  return fmt::format("the tuning database's winner, {:.1f} us", timing->median_us);
}

// Of another machine, or of an earlier look-up, by what it came from there.
std::string earlier_why(const DeviceSpec& device, const KernelChoice& choice) {
  const auto source = [&]() -> std::string {
    switch (choice.source) {
      case ChoiceSource::kTuning:
        return "the tuning database's winner";
      case ChoiceSource::kNearDevice:
        return fmt::format("the winner on {}, the nearest device with a record", choice.nearest);
      case ChoiceSource::kOtherHeads:
        return "the winner of another number of heads";
      case ChoiceSource::kOtherSeed:
        return "the winner of the instance whose seed is a number";
      case ChoiceSource::kOtherBatches:
        return "what the bucket's other batches had";
      case ChoiceSource::kHeuristic:
        return heuristic_why(device, choice);
      case ChoiceSource::kFrozen:
        return "frozen";
      case ChoiceSource::kOverride:
        return "HSTUJIT_OVERRIDE";
    }
    return "";
  };
  return fmt::format("{}: {}",
                     choice.exported ? "exported in a bundle, by a machine that chose it so"
                                     : "chosen so earlier, and no record says otherwise now",
                     source());
}

KernelChoice choice_of(const DeviceSpec& device, KernelConfig config, const ChoiceRecord& record) {
  KernelChoice choice;
  choice.config = std::move(config);
  choice.source = record.source;
  choice.tuned = record.exported && (record.source == ChoiceSource::kTuning || record.source == ChoiceSource::kFrozen);
  choice.nearest = record.device;
  choice.passed_over = record.passed_over;
  choice.exported = record.exported;
  choice.remembered = true;
  const bool estimated = !record.exported && record.source == ChoiceSource::kHeuristic;
  choice.why = estimated ? heuristic_why(device, choice) : earlier_why(device, choice);
  return choice;
}

// The winner of the wanted device, or what a bundle says of it.
std::optional<KernelChoice> decided_choice(Engine& engine, const Wanted& wanted) {
  KernelConfig winner, exported;
  const auto usable_record = [&](const TuningRecord& record) {
    return is_usable(engine, wanted, record.winner, wanted.device, &winner);
  };
  const auto usable_choice = [&](const ChoiceRecord& choice) {
    // What was forced upon a process is not what another one wants; bundles of earlier libraries have it.
    return choice.source != ChoiceSource::kOverride &&
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

// The winner of the nearest device that has a record: a guess, as the cost model's is, but one that was measured.
std::optional<KernelChoice> nearest_choice(Engine& engine, const Wanted& wanted) {
  const DeviceSpec& device = wanted.device;
  for (const DeviceSpec& other : nearest_devices(device)) {
    KernelChoice choice;
    const auto usable = [&](const TuningRecord& record) {
      return is_usable(engine, wanted, record.winner, other, &choice.config);
    };
    for (const TuningKey& key : wanted.keys(other)) {
      const auto record = engine.tuning().find(key, usable, wanted.keep);
      if (!record) continue;
      choice.source = ChoiceSource::kNearDevice;
      choice.nearest = other.name;
      choice.why = fmt::format("untuned on {} ({} multiprocessors); on {} ({}), the nearest device with a record, {}",
                               device.name, device.sm_count, other.name, other.sm_count, winner_why(*record));
      return choice;
    }
  }
  return std::nullopt;
}

// What was forced upon a process is not what another one wants, and another cost model chooses for itself.
bool counts_here(const Wanted& wanted, const ChoiceRecord& noted) {
  switch (noted.source) {
    case ChoiceSource::kFrozen:
    case ChoiceSource::kOverride:
    case ChoiceSource::kOtherHeads:  // looked up anew
    case ChoiceSource::kOtherSeed:
    case ChoiceSource::kOtherBatches:
      return false;
    case ChoiceSource::kHeuristic:
      return noted.exported || noted.estimates == choice_estimates(wanted.spec, wanted.direction);
    case ChoiceSource::kTuning:
    case ChoiceSource::kNearDevice:
      return true;
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

// The winner of this device for an instance that is tuned alike, where it fits and its kernel can be had: a kernel of
// the cost model's that is there is better than none.
std::optional<KernelChoice> choice_of_tuned_alike(Engine& engine, const Wanted& wanted) {
  KernelChoice choice;
  // Attention is tuned alike with other heads, an operator of rows with the other form of the seed.
  choice.source = wanted.spec.family() == Family::kRow ? ChoiceSource::kOtherSeed : ChoiceSource::kOtherHeads;
  const auto usable = [&](const TuningRecord& record) {
    return refusal(wanted, json_or_null(record.winner.text()), &choice.config).empty();
  };
  for (const OpSpec::TunedAlike& other : wanted.spec.tuned_alike()) {
    for (const TuningKey& key :
         serving_keys(*other.spec, wanted.direction, wanted.device, wanted.bucket, wanted.restriction)) {
      const auto record = engine.tuning().find(key, usable, wanted.keep);
      if (!record || is_out_of_reach(engine, wanted, choice.config)) continue;
      choice.why = fmt::format("untuned; with {}, {}", other.difference, winner_why(*record));
      return choice;
    }
  }
  return std::nullopt;
}

// For a bucket of which nothing is known but what its other batches have: that, unless the cost model's estimates
// differ from it in whether the kernel is one for short sequences. That is what tells the classes apart, and worth more
// than the rest of a config that was measured on other lengths. Where the kernel of the estimate is out of reach, the
// other batches' serves, if it is there: whoever prewarmed may have known no such class.
Result<KernelChoice> untuned_choice(Engine& engine, const Wanted& wanted) {
  Result<KernelChoice> own = estimated_choice(engine, wanted);
  const std::optional<Wanted> others = wanted.other_batches();
  if (!others) return own;
  std::optional<KernelChoice> found = decided_choice(engine, *others);
  if (!found) found = nearest_choice(engine, *others);
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

}  // namespace

std::string config_refusal(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                           const Restriction& restriction, const KernelConfig& config) {
  const Result<const Skeleton*> skeleton = find_skeleton(config.skeleton);
  if (!skeleton.ok()) return skeleton.status().message();
  if (!(*skeleton)->serves(spec, direction))
    return fmt::format("{} is no template of {} {}", config.skeleton, spec.op(), to_string(direction));
  const std::vector<Rejection> reasons = rejections(**skeleton, spec, config, device, restriction);
  return reasons.empty() ? std::string() : reasons.front().detail;
}

std::string heuristic_why(const DeviceSpec& device, const KernelChoice& choice) {
  std::string why = fmt::format("untuned on {}: the cost model's fastest estimate", device.name);
  if (!choice.not_taken.empty()) why += ", " + choice.not_taken;
  if (choice.passed_over.empty()) return why;
  const RecordedConfig config = key_text(choice.config);
  bool itself = false;
  std::string others;
  for (const PassedOver& passed : choice.passed_over) {
    const Result<KernelConfig> parsed = parse_kernel_config(json_or_null(passed.config.text()));
    itself = itself || passed.config == config;
    others += fmt::format("{}{} ({}: {})", others.empty() ? "" : ", ",
                          parsed.ok() ? describe(*parsed) : passed.config.text(), passed.reason, passed.detail);
  }
  return why + (itself ? " of those tried, none of which is without fault: " : " after ") + others;
}

void KernelChoice::write(nlohmann::ordered_json& row) const {
  row["tuned"] = tuned;
  row["from"] = to_string(source);
  if (!nearest.empty()) row["nearest_device"] = nearest;
  for (const PassedOver& passed : passed_over) {
    row["passed_over"].push_back(
        {{"config", json_or_null(passed.config.text())}, {"reason", passed.reason}, {"detail", passed.detail}});
  }
}

void note_choice(Engine& engine, const OpSpec& spec, Direction direction, const TuningKey& key,
                 const KernelChoice& choice) {
  if (choice.source == ChoiceSource::kOverride) return;  // it is this process's, and the key's is another one
  const std::string generator = choice_generator(spec, direction);
  if (choice.exported) return engine.tuning().drop_choice(key, generator, /*noted_only=*/true);
  const bool estimated = choice.source == ChoiceSource::kHeuristic;
  engine.tuning().note_choice({key, generator, key_text(choice.config), choice.source, choice.nearest,
                               choice.passed_over, false,
                               estimated ? choice_estimates(spec, direction) : std::string()});
}

Result<KernelChoice> choose_kernel(Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                   const ProblemBucket& bucket, const Restriction& restriction, Keep keep) {
  // What is forced upon a process is the same for all batches: their own choices would refuse different fields.
  const bool for_all = !engine.override_fields().is_null() && bucket.batch_class == BatchClass::kShortSequences;
  const Wanted wanted{spec, direction, device, for_all ? ProblemBucket(bucket.rows) : bucket, restriction, keep};
  if (const FrozenChoices* const frozen = engine.frozen()) return frozen_choice(*frozen, wanted);
  std::optional<KernelChoice> choice = decided_choice(engine, wanted);
  if (!choice) choice = choice_of_tuned_alike(engine, wanted);
  if (!choice) choice = nearest_choice(engine, wanted);
  if (!choice) {
    HSTUJIT_ASSIGN_OR_RETURN(choice, untuned_choice(engine, wanted));
  }
  HSTUJIT_RETURN_IF_ERROR(apply_override(engine, wanted, &*choice));
  return *std::move(choice);
}

}  // namespace hstujit
