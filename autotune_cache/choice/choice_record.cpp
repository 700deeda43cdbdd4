#include "autotune_cache/choice/choice_record.h"

#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/files/member_types.h"
#include "autotune_cache/records/tuning_key_json.h"
#include "compiler/support/hash.h"
#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"

namespace hstujit {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kChoiceFormat = "hstujit-choice-1";
// Raised when the meaning of a field changes, so that old choices are never found again.
constexpr int kChoiceSchema = 1;

}  // namespace

std::string choice_digest(const TuningKey& key, std::string_view generator) {
  KeyHasher hasher("hstujit-choice");
  hasher.add("schema", kChoiceSchema).add("key", tuning_digest(key)).add("generator", generator);
  return hasher.finish();
}

Result<std::string> format_choice(const ChoiceRecord& choice) {
  HSTUJIT_ASSIGN_OR_RETURN(Json config, choice.config.to_json());
  Json json = {{"format", kChoiceFormat},
               {"key", to_json(choice.key)},
               {"generator", choice.generator},
               {"config", std::move(config)},
               {"from", to_string(choice.source)}};
  if (!choice.device.empty()) json["device"] = choice.device;
  if (!choice.estimates.empty()) json["estimates"] = choice.estimates;
  for (const PassedOver& passed : choice.passed_over) {
    HSTUJIT_ASSIGN_OR_RETURN(Json passed_config, passed.config.to_json());
    json["passed_over"].push_back(
        {{"config", std::move(passed_config)}, {"reason", passed.reason}, {"detail", passed.detail}});
  }
  if (choice.exported) json["exported"] = true;
  return format_checked_json(std::move(json), kMaxChoiceBytes);
}

namespace {

Result<ChoiceRecord> parsed_choice(std::string_view text, std::string_view digest) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json json, parse_checked_json(text, kChoiceFormat));
  ChoiceRecord choice;
  if (const auto key = json.find("key"); key != json.end()) choice.key = tuning_key_from(*key);
  choice.generator = text_member(json, "generator");
  if (choice_digest(choice.key, choice.generator) != digest) return Status(Code::kIo, "it belongs to another key");
  choice.config = RecordedConfig::member_of(json);
  if (choice.config.empty()) return Status(Code::kIo, "it has no config");
  const auto source = parse_choice_source(text_member(json, "from"));
  if (!source) return Status(Code::kIo, "it does not say what it comes from");
  choice.source = *source;
  for (const char* name : {"device", "estimates"}) HSTUJIT_RETURN_IF_ERROR(check_text(json, "", name));
  HSTUJIT_RETURN_IF_ERROR(check_list(json, "", "passed_over"));
  HSTUJIT_RETURN_IF_ERROR(check_flag(json, "", "exported"));
  choice.device = text_member(json, "device");
  choice.estimates = text_member(json, "estimates");
  if (const auto list = json.find("passed_over"); list != json.end()) {
    for (const Json& item : *list) {
      if (RecordedConfig::member_of(item).empty())
        return Status(Code::kIo, "a config that was passed over is no object");
      for (const char* name : {"reason", "detail"}) HSTUJIT_RETURN_IF_ERROR(check_text(item, "passed_over: ", name));
      choice.passed_over.push_back(
          {RecordedConfig::member_of(item), text_member(item, "reason"), text_member(item, "detail")});
    }
  }
  const auto exported = json.find("exported");
  choice.exported = exported != json.end() && *exported == true;
  return choice;
}

}  // namespace

Result<ChoiceRecord> parse_choice(std::string_view text, std::string_view digest) {
  return within_memory("the choice", [&] { return parsed_choice(text, digest); });
}

}  // namespace hstujit
