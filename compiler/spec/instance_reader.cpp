#include "compiler/spec/instance_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/expression/parse.h"
#include "compiler/spec/instance_rules.h"
#include "compiler/spec/instance_values.h"
#include "compiler/spec/lengths_file.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

bool takes(std::string_view op, std::string_view name) {
  const std::vector<std::string_view>& names = instance_field_names(op);
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Parameters are numbers, words and conditions; of what is none, as much as a message shows. A condition that is too
// long has a few bytes more than are allowed, so that it is refused for that.
Json parameter_of(const Json& value) {
  if (!value.is_string()) return brief_part(value);
  const auto& text = value.get_ref<const std::string&>();
  return text.size() <= kMaxExpressionLength ? value : Json(text.substr(0, kMaxExpressionLength + 1));
}

// Parameters that the operator reads: neither the instance's own fields nor any that nobody has.
Json parameters_of(const InstanceEntry& entry) {
  const std::string op = entry.op();
  const bool known_op = is_operator(op);
  Json parameters = Json::object();
  for (const InstanceEntry::Member& member : entry.members()) {
    const bool known = is_entry_field(op, member.name);
    const bool instances = known_op && member.name != "op" && takes(op, member.name);
    if (known && !instances) parameters[std::string(member.name)] = parameter_of(*member.value);
  }
  return parameters;
}

// Of an instance that has its operator and its directions.
void read_small_batches(const InstanceEntry& entry, const std::string& op, const std::string& path, Instance& instance,
                        Mistakes& mistakes) {
  const Json* const given = entry.find("small_batches");
  if (given == nullptr || (is_operator(op) && !takes(op, "small_batches"))) return;
  const std::string place = join_path(path, "small_batches");
  const FieldRules rules{"small_batches", ""};
  mistakes.check(place, read_field(*given, rules, place, instance.small_batches));
  const OpSpec* const spec = instance.spec.get();
  if (!instance.small_batches || spec == nullptr || instance.directions.empty()) return;
  const auto has_one = [&](Direction direction) { return spec->small_batch_heads(direction) > 0; };
  if (std::any_of(instance.directions.begin(), instance.directions.end(), has_one)) return;
  mistakes.check(place, Status(Code::kInvalidConfig,
                               fmt::format("{} is true, but {} has kernels for small batches forward only; allowed: "
                                           "false, or directions with \"forward\"",
                                           place, spec->op())));
}

}  // namespace

template <typename T, typename Read>
T InstanceReader::read_once(KnownValues<T>& known, const InstanceEntry& entry, std::string_view name,
                            const std::string& place, Mistakes& mistakes, const Read& read) {
  const Json& json = *entry.find(name);
  if (!entry.inherits(name)) return read(json, place, mistakes);
  const auto [at, added] = known.try_emplace(&json);
  Known<T>& first = at->second;
  if (added) {
    Mistakes found;
    first = {read(json, place, found), place, found.kept()};
    mistakes.add(std::move(found));
    return first.value;
  }
  for (const Mistake& mistake : first.mistakes) {
    const std::string& sentence = mistake.status.message();
    mistakes.add({place + mistake.path.substr(first.place.size()),
                  Status(mistake.status.code(), place + sentence.substr(first.place.size())), mistake.named});
  }
  return first.value;
}

const Result<SharedIntegers>& InstanceReader::lengths_of_file(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  const auto [file, added] = files_.try_emplace(error ? path : whole, SharedIntegers());
  if (added) file->second = read_lengths_file(path);
  return file->second;
}

LengthSource InstanceReader::read_lengths(const Json& json, const std::string& path, Mistakes& mistakes) {
  LengthSource source;
  if (json.is_array()) {
    source.list = parse_integers(json, path, kLengthRules, mistakes);
  } else if (!json.is_object()) {
    mistakes.check(
        path, value_error(path, json, "a list of lengths, {\"file\": ...} or {\"distribution\": \"uniform\", ...}"));
  } else if (json.contains("file")) {
    check_names(json, path, {"file"}, mistakes);
    const Json& file = json["file"];
    const std::string place = join_path(path, "file");
    if (!file.is_string()) {
      mistakes.check(place, value_error(place, file, "a path, relative to the config's folder"));
      return source;
    }
    const Result<SharedIntegers>& list = lengths_of_file(folder_ / file.get_ref<const std::string&>());
    if (mistakes.check(place, list.status().with_context(place))) source.list = *list;
  } else {
    const size_t before = mistakes.count();
    read_fields(json, path, source.uniform, mistakes, {"file"});
    if (mistakes.count() == before && source.uniform.low > source.uniform.high) {
      const std::string place = join_path(path, "low");
      mistakes.check(place, value_error(place, source.uniform.low,
                                        fmt::format("a number up to \"high\", which is {}", source.uniform.high)));
    }
  }
  return source;
}

// max_seq_len with lengths or, of an operator without sequences, rows: it is one sequence of so many.
void InstanceReader::read_size(const InstanceEntry& entry, const std::string& op, const std::string& path,
                               Instance& instance, Mistakes& mistakes) {
  if (is_operator(op) && takes(op, "rows")) {
    const std::string place = join_path(path, "rows");
    int64_t rows = 0;
    if (const Json* const given = entry.find("rows")) {
      mistakes.check(place, read_field(*given, kRowsRules, place, rows));
    } else {
      mistakes.miss(place, describe_rules(kRowsRules, 1));
    }
    instance.max_seq_lens = instance.lengths.list = {rows};
    return;
  }
  if (entry.find("lengths") != nullptr) {
    instance.lengths = read_once(
        lengths_, entry, "lengths", join_path(path, "lengths"), mistakes,
        [&](const Json& json, const std::string& place, Mistakes& found) { return read_lengths(json, place, found); });
  }
  const std::string place = join_path(path, "max_seq_len");
  if (entry.find("max_seq_len") == nullptr) {
    if (!is_operator(op)) return;  // which may want rows
    mistakes.miss(place, describe_rules(kMaxSeqLenRules, 1) + ", or a list of them");
    return;
  }
  instance.max_seq_lens = read_once(integers_, entry, "max_seq_len", place, mistakes, parse_max_seq_lens);
}

namespace {

// The end of a sentence that says what a delta_len may be.
std::string lists_of_delta_len(std::string_view op) {
  constexpr const char* kField = "jagged_queries";
  if (is_entry_field(op, kField)) return fmt::format(", or {}=true with a list of them", kField);
  std::vector<std::string_view> others = operator_names();
  std::erase_if(others, [](std::string_view other) { return !is_entry_field(other, kField); });
  return fmt::format("; {} has lists of them, with {}=true", fmt::join(others, " or "), kField);
}

}  // namespace

// One number, or a list where sequences may have different ones.
SharedIntegers InstanceReader::read_delta_len(const InstanceEntry& entry, const std::string& path, const OpSpec* spec,
                                              Mistakes& mistakes) {
  const Json& given = *entry.find("delta_len");
  if (spec != nullptr && find_argument(spec->signature(Direction::kForward), Semantic::kMaxRows, kQueryAxis) < 0) {
    mistakes.check(path, Status(Code::kInvalidConfig,
                                fmt::format("{} is {}, but the result has all rows; allowed: with targets_only=true",
                                            path, brief_json(given))));
    return {};
  }
  if (given.is_array() && spec != nullptr && find_argument(spec->signature(Direction::kForward), "seq_offsets_q") < 0) {
    mistakes.check(path, Status(Code::kInvalidConfig,
                                fmt::format("{} is {}, but every sequence has the same number of rows of q; allowed: "
                                            "{}{}",
                                            path, brief_json(given), describe_rules(kDeltaLenRules, 0),
                                            lists_of_delta_len(spec->op()))));
    return {};
  }
  return read_once(integers_, entry, "delta_len", path, mistakes,
                   [](const Json& json, const std::string& place, Mistakes& found) -> SharedIntegers {
                     return parse_integers(json, place, kDeltaLenRules, found);
                   });
}

Instance InstanceReader::read(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes) {
  Instance instance;
  if (!entry.own().is_object()) {
    mistakes.check(path, value_error(path, entry.own(), "a JSON object with \"name\" and \"op\""));
    return instance;
  }
  const std::string op = entry.op();
  const std::vector<std::string>& known = entry_field_names(op);
  check_names(entry.own(), path, {known.begin(), known.end()}, mistakes, is_operator(op) ? op : "");

  Json parameters = parameters_of(entry);
  // Counts of a sequence in generated inputs when the config says only that there are some.
  constexpr int64_t kUsualTargets = 20, kUsualContexts = 6;
  take_count(parameters, kCountedFields[0], path, kUsualTargets, instance.num_targets, mistakes);
  take_count(parameters, kCountedFields[1], path, kUsualContexts, instance.num_contexts, mistakes);
  instance.spec = parse_op_spec(parameters, path, mistakes);
  const OpSpec* const spec = instance.spec.get();
  instance.name = parse_name(entry, path, mistakes);
  const Json* const directions = entry.find("directions");
  instance.directions = directions == nullptr
                            ? std::vector{Direction::kForward}
                            : parse_directions(*directions, join_path(path, "directions"), spec, mistakes);
  read_size(entry, op, path, instance, mistakes);
  if (entry.find("delta_len") != nullptr)
    instance.delta_lens = read_delta_len(entry, join_path(path, "delta_len"), spec, mistakes);
  read_small_batches(entry, op, path, instance, mistakes);
  instance.alpha = parse_alpha(entry, path, spec, mistakes);
  return instance;
}

Instance parse_instance(const Json& json, const std::string& path, const fs::path& folder, Mistakes& mistakes) {
  return InstanceReader(folder).read(InstanceEntry(json), path, mistakes);
}

Result<Instance> parse_instance(const Json& json, const std::string& path, const fs::path& folder) {
  Mistakes mistakes;
  Instance instance = parse_instance(json, path, folder, mistakes);
  if (!mistakes.empty()) return mistakes.first();
  return instance;
}

}  // namespace hstujit
