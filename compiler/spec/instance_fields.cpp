// Which fields an entry of "ops" may have, by its operator.
#include <algorithm>
#include <map>
#include <mutex>

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
  // Operators on the last rows of sequences, or of all where they do not say so: launches say a max_delta_len.
  const bool last_rows =
      find_argument(signature, Semantic::kMaxRows, kQueryAxis) >= 0 || parameters.contains("jagged_queries");
  if (last_rows || parameters.contains("targets_only")) names.emplace_back("delta_len");
  if (!last_rows && spec.ok() && (*spec)->small_batch_heads(Direction::kForward) > 0)
    names.emplace_back("small_batches");
  return names;
}

// Keeps the result of `find` for each operator, which is asked once: all of them take milliseconds, and most processes
// have a few.
template <typename Names>
class ByOperator {
 public:
  explicit ByOperator(Names (*find)(std::string_view op)) : find_(find) {}

  const Names& of(std::string_view op) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = known_.find(op);
    return found != known_.end() ? found->second : known_.emplace(op, find_(op)).first->second;
  }

 private:
  Names (*const find_)(std::string_view op);
  std::mutex mutex_;
  std::map<std::string, Names, std::less<>> known_;  // places in it stay
};

std::vector<std::string> find_entry_fields(std::string_view op) {
  std::vector<std::string> names;
  for (const std::string_view name : instance_field_names(op)) names.emplace_back(name);
  const Json schema = operator_schema(op);
  for (const auto& field : schema["properties"].items()) names.push_back(field.key());
  return names;
}

std::vector<std::string> find_fields_of_any() {
  std::vector<std::string> names;
  for (const std::string_view op : operator_names()) {
    for (const std::string& name : entry_field_names(op)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

const std::vector<std::string_view>& instance_field_names(std::string_view op) {
  static auto& names = *new ByOperator<std::vector<std::string_view>>(find_instance_fields);
  return names.of(op);
}

const std::vector<std::string>& entry_field_names(std::string_view op) {
  static auto& names = *new ByOperator<std::vector<std::string>>(find_entry_fields);
  if (is_operator(op)) return names.of(op);
  static const auto& of_any = *new std::vector<std::string>(find_fields_of_any());
  return of_any;
}

bool is_entry_field(std::string_view op, std::string_view name) {
  const std::vector<std::string>& names = entry_field_names(op);
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace hstujit
