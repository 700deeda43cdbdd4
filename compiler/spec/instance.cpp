// Parsing of one entry of "ops": the operator's own parameters, and what the config says about its calls.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/spec/aliases.h"
#include "compiler/spec/config.h"
#include "compiler/spec/instance_reader.h"
#include "compiler/spec/lengths_file.h"
#include "compiler/spec/limits.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

// Targets of a sequence in generated inputs when the config says only that there are some.
constexpr int64_t kUsualTargets = 20;

constexpr FieldRules kLengthRules{"length", "rows of a sequence", 0, kMaxSeqLen};
constexpr FieldRules kMaxSeqLenRules{"max_seq_len", "no sequence is longer", 1, kMaxSeqLen};
constexpr FieldRules kDeltaLenRules{"delta_len", "rows of q of a sequence", 0, kMaxSeqLen};
constexpr FieldRules kNumTargetsRules{"num_targets", "targets of a sequence", 0, kMaxSeqLen};

// Empty where there is no name.
std::string parse_name(const InstanceEntry& entry, const std::string& path, Mistakes& mistakes) {
  const std::string allowed =
      fmt::format("letters, digits, '_', '-' and '.', at most {}, and at least one of them no '.'", kLongestName);
  const std::string place = join_path(path, "name");
  const Json* const given = entry.find("name");
  if (given == nullptr) {
    mistakes.miss(place, allowed);
    return {};
  }
  const Json& name = *given;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  std::string text = name.is_string() ? name.get<std::string>() : "";
  // Names become names of folders, of which "." and ".." are others.
  const bool dots = text.find_first_not_of('.') == std::string::npos;
  if (dots || text.size() > kLongestName || !std::all_of(text.begin(), text.end(), plain)) {
    mistakes.check(place, value_error(place, name, allowed));
    return {};
  }
  return text;
}

Result<Direction> parse_direction_of(const Json& json, const std::string& path, const OpSpec* spec) {
  constexpr Direction kAll[] = {Direction::kForward, Direction::kBackward};
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  const auto direction = parse_direction(text);
  if (!direction) {
    const std::string_view meant = meant_value("directions", text, {to_string(kAll[0]), to_string(kAll[1])});
    return value_error(path, json, "\"forward\" or \"backward\"", meant);
  }
  if (spec == nullptr || spec->supports(*direction)) return *direction;
  return Status(Code::kInvalidConfig,
                fmt::format("{} is {}, but {}", path, brief_json(json), without_direction(*spec, *direction)));
}

// `spec` is null where nothing is known of the operator.
std::vector<Direction> parse_directions(const Json& json, const std::string& path, const OpSpec* spec,
                                        Mistakes& mistakes) {
  std::vector<Direction> directions;
  constexpr size_t kDirections = 2;
  if (!json.is_array() || json.empty() || json.size() > kDirections) {
    mistakes.check(path, value_error(path, json, "a list of \"forward\", \"backward\" or both"));
    return directions;
  }
  for (size_t index = 0; index < json.size(); ++index) {
    const std::string place = fmt::format("{}[{}]", path, index);
    const Result<Direction> direction = parse_direction_of(json[index], place, spec);
    if (!mistakes.check(place, direction.status())) continue;
    if (std::find(directions.begin(), directions.end(), *direction) != directions.end())
      mistakes.check(place, value_error(place, json[index], "a direction that the list does not have already"));
    directions.push_back(*direction);
  }
  return directions;
}

// An integer, or a list of at least one when `json` is a list.
std::vector<int64_t> parse_integers(const Json& json, const std::string& path, const FieldRules& rules,
                                    Mistakes& mistakes) {
  std::vector<int64_t> values(1);
  if (!json.is_array()) {
    mistakes.check(path, read_field(json, rules, path, values[0]));
    return values;
  }
  if (json.empty()) {
    mistakes.check(path, value_error(path, json, "a list of at least one " + std::string(rules.name)));
    return values;
  }
  values.resize(json.size());
  for (size_t index = 0; index < json.size(); ++index) {
    // There may be millions of them: a place is written down for a mistake only.
    if (json[index].is_number_integer() && allowed_by(rules, json[index])) {
      values[index] = json[index].get<int64_t>();
      continue;
    }
    if (mistakes.full()) {
      mistakes.count_one();
      continue;
    }
    const std::string place = fmt::format("{}[{}]", path, index);
    mistakes.check(place, read_field(json[index], rules, place, values[index]));
  }
  return values;
}

// Ascending, each once.
SharedIntegers parse_max_seq_lens(const Json& json, const std::string& path, Mistakes& mistakes) {
  if (const size_t count = json.size(); count > kMaxConfigKernels) {
    mistakes.check(path, Status(Code::kInvalidConfig,
                                fmt::format("{} has {} entries; allowed: at most {}", path, count, kMaxConfigKernels)));
    return {};
  }
  std::vector<int64_t> lengths = parse_integers(json, path, kMaxSeqLenRules, mistakes);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

bool takes(std::string_view op, std::string_view name) {
  const std::vector<std::string_view>& names = instance_field_names(op);
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_operator(std::string_view op) {
  const auto operators = operator_names();
  return std::find(operators.begin(), operators.end(), op) != operators.end();
}

// Splits "num_targets: true | false | count" into the operator's flag and the count for generated inputs.
void take_num_targets(Json& parameters, const std::string& path, int64_t& count, Mistakes& mistakes) {
  const auto value = parameters.find("num_targets");
  if (value == parameters.end()) return;
  if (value->is_boolean()) {
    count = *value == true ? kUsualTargets : 0;
    return;
  }
  if (value->is_number_integer() && allowed_by(kNumTargetsRules, *value)) {
    count = value->get<int64_t>();
    *value = count > 0;
    return;
  }
  const std::string place = join_path(path, "num_targets");
  mistakes.check(place, value_error(place, *value,
                                    fmt::format("true, false, or how many of them generated inputs have, an integer "
                                                "from {} to {}",
                                                kNumTargetsRules.min, kNumTargetsRules.max)));
  *value = true;  // whoever wrote that wants some: what goes with targets is no mistake besides
}

double parse_alpha(const InstanceEntry& entry, const std::string& path, const OpSpec* spec, Mistakes& mistakes) {
  if (const Json* const alpha = entry.find("alpha")) {
    const std::string place = join_path(path, "alpha");
    const bool fits = alpha->is_number() && std::abs(alpha->get<double>()) <= std::numeric_limits<float>::max();
    if (fits) return alpha->get<double>();
    mistakes.check(place, value_error(place, *alpha, "a finite number of fp32"));
  }
  const Json parameters = spec == nullptr ? Json::object() : spec->to_json();
  return parameters.contains("attn_dim") ? 1.0 / parameters["attn_dim"].get<double>() : 1.0;
}

// What the operator reads: neither the instance's own fields nor any that nobody has. Its parameters are numbers and
// words; of what is none, as much as a message shows.
Json parameters_of(const InstanceEntry& entry) {
  const std::string op = entry.op();
  const bool known_op = is_operator(op);
  Json parameters = Json::object();
  for (const InstanceEntry::Member& member : entry.members()) {
    const bool known = is_entry_field(op, member.name);
    const bool instances = known_op && member.name != "op" && takes(op, member.name);
    if (known && !instances) parameters[std::string(member.name)] = brief_part(*member.value);
  }
  return parameters;
}

}  // namespace

namespace {

std::vector<std::string_view> find_instance_fields(std::string_view op) {
  std::vector<std::string_view> names = {"name", "op", "directions"};
  const Json parameters = operator_schema(op)["properties"];
  const Result<OpSpecPtr> spec = smallest_op_spec(op);
  const Signature signature = spec.ok() ? (*spec)->signature(Direction::kForward) : Signature();
  if (has_sequences(signature)) {
    names.insert(names.end(), {"max_seq_len", "lengths"});
  } else {
    names.emplace_back("rows");
  }
  if (find_argument(signature, "alpha") >= 0) names.emplace_back("alpha");
  // Operators on the last rows of sequences: launches say a max_delta_len.
  if (find_argument(signature, Semantic::kMaxRows, kQueryAxis) >= 0 || parameters.contains("jagged_queries")) {
    names.emplace_back("delta_len");
  } else if (spec.ok() && (*spec)->small_batch_heads(Direction::kForward) > 0) {
    names.emplace_back("small_batches");
  }
  return names;
}

}  // namespace

const std::vector<std::string_view>& instance_field_names(std::string_view op) {
  using Names = std::map<std::string_view, std::vector<std::string_view>>;
  static const Names* const names = [] {
    auto* const of_all = new Names;
    for (const std::string_view known : operator_names()) of_all->emplace(known, find_instance_fields(known));
    return of_all;
  }();
  return names->at(op);
}

const std::vector<std::string>& entry_field_names(std::string_view op) {
  using Names = std::map<std::string, std::vector<std::string>, std::less<>>;
  static const Names* const names = [] {
    auto* const of_all = new Names;
    std::vector<std::string>& of_any = (*of_all)[""];
    for (const std::string_view known : operator_names()) {
      std::vector<std::string>& of_one = (*of_all)[std::string(known)];
      for (const std::string_view name : instance_field_names(known)) of_one.emplace_back(name);
      const Json schema = operator_schema(known);
      for (const auto& field : schema["properties"].items()) of_one.push_back(field.key());
      for (const std::string& name : of_one) {
        if (std::find(of_any.begin(), of_any.end(), name) == of_any.end()) of_any.push_back(name);
      }
    }
    return of_all;
  }();
  const auto found = names->find(op);
  return found == names->end() ? names->at("") : found->second;
}

bool is_entry_field(std::string_view op, std::string_view name) {
  const std::vector<std::string>& names = entry_field_names(op);
  return std::find(names.begin(), names.end(), name) != names.end();
}

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
  constexpr FieldRules kRowsRules{"rows", "rows of the whole problem", 0, kMaxSeqLen};
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
  take_num_targets(parameters, path, instance.num_targets, mistakes);
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
  const Json* const small_batches = entry.find("small_batches");
  if (small_batches != nullptr && (!is_operator(op) || takes(op, "small_batches"))) {
    const std::string place = join_path(path, "small_batches");
    const FieldRules rules{"small_batches", ""};
    mistakes.check(place, read_field(*small_batches, rules, place, instance.small_batches));
    const auto has_one = [&](Direction direction) { return spec->small_batch_heads(direction) > 0; };
    if (instance.small_batches && spec != nullptr && !instance.directions.empty() &&
        std::none_of(instance.directions.begin(), instance.directions.end(), has_one)) {
      mistakes.check(place,
                     Status(Code::kInvalidConfig,
                            fmt::format("{} is true, but {} has kernels for small batches forward only; allowed: "
                                        "false, or directions with \"forward\"",
                                        place, spec->op())));
    }
  }
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
