#include "runtime/engine/frozen_choices.h"

#include <fmt/format.h>

#include "autotune_cache/files/checked_json.h"
#include "autotune_cache/files/member_types.h"
#include "autotune_cache/records/tuning_key_json.h"
#include "compiler/support/file_kind.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"
#include "runtime/engine/generator_keys.h"

namespace hstujit {

namespace {

constexpr size_t kLongestKey = 64;  // of a digest

Status check_row(const Json& row) {
  constexpr const char* kWhere = "one of its choices: ";
  for (const char* name : {"key", "op", "direction", "device", "arch", "generator"})
    HSTUJIT_RETURN_IF_ERROR(check_text(row, kWhere, name));
  for (const char* name : {"sm_count", "bucket"}) HSTUJIT_RETURN_IF_ERROR(check_integer(row, kWhere, name));
  for (const char* name : {"deterministic", "small_batch", "short_sequences"})
    HSTUJIT_RETURN_IF_ERROR(check_flag(row, kWhere, name));
  return check_filled_object(row, kWhere, "spec");
}

// Reads the key of a row, whose spec is an object, for people.
TuningKey frozen_key_from(const Json& row) {
  TuningKey key = tuning_key_from(row);
  if (const auto spec = row.find("spec"); spec != row.end()) key.spec = dump_json(*spec);
  return key;
}

}  // namespace

Result<std::string> format_choices(const std::vector<FrozenChoice>& choices) {
  std::map<std::string, Json> rows;  // by digest: the same choices give the same file
  for (const FrozenChoice& choice : choices) {
    const std::string digest = tuning_digest(choice.key);
    Json row = {{"key", digest}};
    row.update(to_json(choice.key));
    row["spec"] = json_or_null(choice.key.spec);
    row["generator"] = kernel_generator(choice.key.op, choice.config);
    row["config"] = json_or_null(key_text(choice.config));
    const auto [place, added] = rows.emplace(digest, row);
    if (!added && place->second != row) {
      return Status(Code::kInvalidArgument,
                    fmt::format("choices: the key {} occurs twice, with the configs {} and {}; each key has one",
                                digest, dump_json(place->second["config"]), dump_json(row["config"])));
    }
  }
  Json list = Json::array();
  for (auto& [digest, row] : rows) list.push_back(std::move(row));
  return format_checked_json({{"format", kChoicesFormat}, {"choices", std::move(list)}}, kMaxChoicesBytes);
}

Result<FrozenChoices> FrozenChoices::parse(std::string_view text, const std::string& origin) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kInvalidConfig,
                  fmt::format("{}: {}; it must be a file of hstujit freeze", printable(origin), what));
  };
  FrozenChoices choices;
  choices.origin_ = origin;
  Result<Json> json = parse_checked_json(text, kChoicesFormat, &choices.checksum_);
  if (!json.ok() && json.status().code() == Code::kOutOfMemory) return json.status().with_context(printable(origin));
  if (!json.ok()) return wrong(json.status().message());
  const auto list = json->find("choices");
  if (list == json->end() || !list->is_array()) return wrong("it has no list \"choices\"");
  for (const Json& row : *list) {
    if (!row.is_object()) return wrong("one of its choices is no object");
    if (const Status types = check_row(row); !types.ok()) return wrong(types.message());
    const std::string key = text_member(row, "key");
    if (key.empty() || !row.contains("config")) return wrong("one of its choices has no key or no config");
    Result<KernelConfig> config = parse_kernel_config(row["config"]);
    if (!config.ok()) return wrong(config.status().message());
    const std::string generator = text_member(row, "generator"),
                      own = kernel_generator(text_member(row, "op"), *config);
    if (generator != own) {
      return Status(Code::kInvalidConfig,
                    fmt::format("{}: its choice {} is of the generator {}, and this library has the generator {}; make "
                                "the file anew with hstujit freeze of this build",
                                printable(origin), describe(*config), printable(generator), own));
    }
    choices.keys_.push_back(frozen_key_from(row));
    if (key != tuning_digest(choices.keys_.back()))
      return wrong(fmt::format("the key {} does not match the fields next to it", quote(key, kLongestKey)));
    const auto [place, added] = choices.configs_.emplace(key, *config);
    if (!added && place->second != *config) {
      return wrong(fmt::format("the key {} occurs twice, with the configs {} and {}", quote(key, kLongestKey),
                               brief_json(to_json(place->second)), brief_json(to_json(*config))));
    }
  }
  return choices;
}

const KernelConfig* FrozenChoices::find(const TuningKey& key) const {
  const auto found = configs_.find(tuning_digest(key));
  return found == configs_.end() ? nullptr : &found->second;
}

std::optional<NearestEntry> FrozenChoices::nearest(const std::vector<TuningKey>& keys) const {
  std::call_once(read_->once, [this] { read_->keys.emplace(keys_); });
  std::optional<NearestEntry> best;
  for (const TuningKey& key : keys) {
    std::optional<NearestEntry> found = read_->keys->nearest(key);
    if (found && (!best || found->differences.size() < best->differences.size())) best = std::move(found);
  }
  return best;
}

}  // namespace hstujit
