// Parsing of one entry of "ops": the operator's own parameters, and what the config says about its calls.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/spec/config.h"
#include "compiler/spec/limits.h"
#include "compiler/support/files.h"
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

Result<std::string> parse_name(const Json& json, const std::string& path) {
  constexpr std::string_view kAllowed = "letters, digits, '_', '-' and '.', at least one of them no '.'";
  const std::string place = join_path(path, "name");
  if (!json.contains("name"))
    return Status(Code::kInvalidConfig, fmt::format("{} is missing; allowed: {}", place, kAllowed));
  const Json& name = json["name"];
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  if (!name.is_string()) return value_error(place, name, kAllowed);
  const auto& text = name.get_ref<const std::string&>();
  // Names become names of folders, of which "." and ".." are others.
  const bool dots = text.find_first_not_of('.') == std::string::npos;
  if (dots || !std::all_of(text.begin(), text.end(), plain)) return value_error(place, name, kAllowed);
  return text;
}

Result<std::vector<Direction>> parse_directions(const Json& json, const std::string& path, const OpSpec& spec) {
  if (!json.is_array() || json.empty()) return value_error(path, json, "a list of \"forward\", \"backward\" or both");
  std::vector<Direction> directions;
  for (size_t index = 0; index < json.size(); ++index) {
    const std::string place = fmt::format("{}[{}]", path, index);
    const auto direction =
        json[index].is_string() ? parse_direction(json[index].get_ref<const std::string&>()) : std::nullopt;
    if (!direction) return value_error(place, json[index], "\"forward\" or \"backward\"");
    if (!spec.supports(*direction)) {
      return Status(Code::kUnsupported, fmt::format("{} is {}, but {} has no {} kernel", place, brief_json(json[index]),
                                                    spec.op(), to_string(*direction)));
    }
    if (std::find(directions.begin(), directions.end(), *direction) == directions.end())
      directions.push_back(*direction);
  }
  return directions;
}

// An integer, or a list of at least one when `json` is a list.
Result<std::vector<int64_t>> parse_integers(const Json& json, const std::string& path, const FieldRules& rules) {
  std::vector<int64_t> values(1);
  if (!json.is_array()) {
    HSTUJIT_RETURN_IF_ERROR(read_field(json, rules, path, values[0]));
    return values;
  }
  if (json.empty()) return value_error(path, json, "a list of at least one " + std::string(rules.name));
  values.resize(json.size());
  for (size_t index = 0; index < json.size(); ++index) {
    HSTUJIT_RETURN_IF_ERROR(read_field(json[index], rules, fmt::format("{}[{}]", path, index), values[index]));
  }
  return values;
}

// One length a line; blank lines and lines that begin with '#' are left out.
Result<std::vector<int64_t>> read_lengths(const fs::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::vector<int64_t> lengths;
  size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const size_t end = line.find_last_not_of(" \t\r") + 1;
    int64_t length = -1;
    const auto [rest, error] = std::from_chars(line.data() + first, line.data() + end, length);
    if (error != std::errc() || rest != line.data() + end || length < 0 || length > kLengthRules.max) {
      return Status(Code::kInvalidConfig, fmt::format("{}:{}: {} is not a length; allowed: an integer from 0 to {}",
                                                      path.string(), number, quote(line), kLengthRules.max));
    }
    lengths.push_back(length);
  }
  if (lengths.empty())
    return Status(Code::kInvalidConfig, fmt::format("{} holds no lengths; allowed: one integer a line", path.string()));
  return lengths;
}

Result<LengthSource> parse_lengths(const Json& json, const std::string& path, const fs::path& folder) {
  LengthSource source;
  if (json.is_array()) {
    HSTUJIT_ASSIGN_OR_RETURN(source.list, parse_integers(json, path, kLengthRules));
    return source;
  }
  if (!json.is_object())
    return value_error(path, json, "a list of lengths, {\"file\": ...} or {\"distribution\": \"uniform\", ...}");
  if (json.contains("file")) {
    HSTUJIT_RETURN_IF_ERROR(check_names(json, path, {"file"}));
    if (!json["file"].is_string())
      return value_error(path + ".file", json["file"], "a path, relative to the config's folder");
    Result<std::vector<int64_t>> list = read_lengths(folder / json["file"].get_ref<const std::string&>());
    if (!list.ok()) return list.status().with_context(path + ".file");
    source.list = std::move(list).value();
    return source;
  }
  HSTUJIT_RETURN_IF_ERROR(fields_from_json(json, path, source.uniform, {"file"}));
  if (source.uniform.low > source.uniform.high) {
    return value_error(path + ".low", source.uniform.low,
                       fmt::format("a number up to \"high\", which is {}", source.uniform.high));
  }
  return source;
}

// max_seq_len with lengths, or rows alone: a problem without sequences is one sequence of so many rows.
Status parse_size(const Json& json, const std::string& path, const fs::path& folder, Instance& instance) {
  if (json.contains("rows")) {
    for (const char* other : {"max_seq_len", "lengths"}) {
      if (json.contains(other))
        return value_error(join_path(path, "rows"), json["rows"], fmt::format("rows alone, or {} without it", other));
    }
    const FieldRules rules{"rows", "rows of the whole problem", 1};
    int64_t rows = 0;
    HSTUJIT_RETURN_IF_ERROR(read_field(json["rows"], rules, join_path(path, "rows"), rows));
    instance.max_seq_lens = instance.lengths.list = {rows};
    return {};
  }
  const std::string place = join_path(path, "max_seq_len");
  if (!json.contains("max_seq_len")) {
    return Status(Code::kInvalidConfig, fmt::format("{} is missing; allowed: {}, or a list of them", place,
                                                    describe_rules(kMaxSeqLenRules, 1)));
  }
  HSTUJIT_ASSIGN_OR_RETURN(instance.max_seq_lens, parse_integers(json["max_seq_len"], place, kMaxSeqLenRules));
  std::sort(instance.max_seq_lens.begin(), instance.max_seq_lens.end());
  instance.max_seq_lens.erase(std::unique(instance.max_seq_lens.begin(), instance.max_seq_lens.end()),
                              instance.max_seq_lens.end());
  if (json.contains("lengths")) {
    HSTUJIT_ASSIGN_OR_RETURN(instance.lengths, parse_lengths(json["lengths"], join_path(path, "lengths"), folder));
  }
  return {};
}

// Splits "num_targets: true | false | count" into the operator's flag and the count for generated inputs.
Status take_num_targets(Json& parameters, const std::string& path, int64_t& count) {
  const auto value = parameters.find("num_targets");
  if (value == parameters.end()) return {};
  if (value->is_boolean()) {
    count = *value == true ? kUsualTargets : 0;
    return {};
  }
  const std::string place = join_path(path, "num_targets");
  if (!value->is_number_integer())
    return value_error(place, *value, "true, false, or the number of targets in generated inputs");
  HSTUJIT_RETURN_IF_ERROR(read_field(*value, kNumTargetsRules, place, count));
  *value = count > 0;
  return {};
}

// One number, or a list where sequences may have different ones.
Result<std::vector<int64_t>> parse_delta_len(const Json& json, const std::string& path, const OpSpec& spec) {
  if (json.is_array() && find_argument(spec.signature(Direction::kForward), "seq_offsets_q") < 0) {
    return Status(Code::kInvalidConfig,
                  fmt::format("{} is {}, but every sequence has the same number of rows of q; allowed: {}, or "
                              "jagged_queries=true with a list of them",
                              path, brief_json(json), describe_rules(kDeltaLenRules, 0)));
  }
  return parse_integers(json, path, kDeltaLenRules);
}

}  // namespace

std::vector<std::string_view> instance_field_names(std::string_view op) {
  std::vector<std::string_view> names = {"name", "op", "directions", "max_seq_len", "lengths", "rows", "alpha"};
  // Operators on the last rows of sequences, whose launches say a max_delta_len, have this parameter.
  const Json parameters = operator_schema(op)["properties"];
  if (parameters.contains("jagged_queries")) {
    names.emplace_back("delta_len");
  } else if (parameters.contains("heads")) {
    names.emplace_back("small_batches");
  }
  return names;
}

Result<Instance> parse_instance(const Json& json, const std::string& path, const fs::path& folder) {
  if (!json.is_object()) return value_error(path, json, "a JSON object with \"name\" and \"op\"");
  const auto op = json.find("op");
  const auto operators = operator_names();
  Json parameters = json;
  if (op != json.end() && op->is_string() &&
      std::find(operators.begin(), operators.end(), op->get_ref<const std::string&>()) != operators.end()) {
    const Json schema = operator_schema(op->get_ref<const std::string&>());
    const std::vector<std::string_view> own = instance_field_names(op->get_ref<const std::string&>());
    std::vector<std::string_view> allowed = own;
    for (const auto& field : schema["properties"].items()) allowed.push_back(field.key());
    HSTUJIT_RETURN_IF_ERROR(check_names(json, path, allowed));
    for (const std::string_view name : own) {
      if (name != "op") parameters.erase(std::string(name));
    }
  }

  Instance instance;
  HSTUJIT_RETURN_IF_ERROR(take_num_targets(parameters, path, instance.num_targets));
  HSTUJIT_ASSIGN_OR_RETURN(instance.spec, parse_op_spec(parameters, path));
  HSTUJIT_ASSIGN_OR_RETURN(instance.name, parse_name(json, path));
  HSTUJIT_ASSIGN_OR_RETURN(instance.directions, parse_directions(json.value("directions", Json::array({"forward"})),
                                                                 join_path(path, "directions"), *instance.spec));
  HSTUJIT_RETURN_IF_ERROR(parse_size(json, path, folder, instance));
  if (json.contains("delta_len")) {
    HSTUJIT_ASSIGN_OR_RETURN(instance.delta_lens,
                             parse_delta_len(json["delta_len"], join_path(path, "delta_len"), *instance.spec));
  }
  if (json.contains("small_batches")) {
    const Json& small = json["small_batches"];
    if (!small.is_boolean()) return value_error(join_path(path, "small_batches"), small, "true or false");
    instance.small_batches = small.get<bool>();
  }
  if (json.contains("alpha")) {
    const Json& alpha = json["alpha"];
    if (!alpha.is_number() || !std::isfinite(alpha.get<double>()))
      return value_error(join_path(path, "alpha"), alpha, "a finite number");
    instance.alpha = alpha.get<double>();
  } else {
    const Json spec = instance.spec->to_json();
    instance.alpha = spec.contains("attn_dim") ? 1.0 / spec["attn_dim"].get<double>() : 1.0;
  }
  return instance;
}

}  // namespace hstujit
