#include "runtime/dispatch/choice_sentences.h"

#include <fmt/format.h>

#include "compiler/support/json.h"

namespace hstujit {

std::string winner_why(const TuningRecord& record) {
  const TimedCandidate* timing = record.timing(record.winner);
  if (timing == nullptr) return "the tuning database's winner";
  return fmt::format("the tuning database's winner, {:.1f} us", timing->median_us);
}

std::string heuristic_why(const DeviceSpec& device, const KernelChoice& choice) {
  std::string why = fmt::format("untuned on {}: {}", device.name, description_of(ChoiceSource::kHeuristic));
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

std::string earlier_why(const DeviceSpec& device, const KernelChoice& choice) {
  const bool estimated = kind_of(choice.source) == ChoiceKind::kEstimated;
  std::string source = estimated ? heuristic_why(device, choice) : std::string(description_of(choice.source));
  if (choice.source == ChoiceSource::kNearDevice) source += ", " + choice.nearest;
  return fmt::format("{}: {}",
                     choice.exported ? "exported in a bundle, by a machine that chose it so"
                                     : "chosen so earlier, and no record says otherwise now",
                     source);
}

}  // namespace hstujit
