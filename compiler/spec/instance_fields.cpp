// Which fields an entry of "ops" may have, by its operator.
#include <algorithm>
#include <map>

#include "compiler/spec/config.h"
#include "compiler/spec/sequence_rows.h"

namespace hstujit {

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

}  // namespace hstujit
