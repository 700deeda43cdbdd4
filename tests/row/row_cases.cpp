#include "tests/row/row_cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "compiler/spec/sequence_rows.h"
#include "tests/paths.h"

#ifndef HSTUJIT_OPERATOR_TESTS
#define HSTUJIT_OPERATOR_TESTS source_path("/tests/operators")
#endif

namespace hstujit {

namespace {

std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : std::filesystem::directory_iterator(HSTUJIT_OPERATOR_TESTS)) {
    if (std::filesystem::path file = folder.path() / "cases.json"; std::filesystem::exists(file))
      files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end());
  return files;
}

RowCase with(const RowCase& before, const std::string& parameter, const Json& value) {
  RowCase result = before;
  result.json[parameter] = value;
  if (value == true) result.name += "_" + parameter;
  if (value.is_string()) result.name += "_" + value.get<std::string>();
  return result;
}

// Selects the parameters that the operator has.
Json known_to(const std::string& op, const Json& common) {
  const Json schema = operator_schema(op);
  Json known = Json::object();
  for (const auto& [name, value] : common.items()) {
    if (schema["properties"].contains(name)) known[name] = value;
  }
  return known;
}

// Whether the type of the rows of all cases, where one is given, is one that the case's weights go with.
bool goes_with_rows(const Json& json) {
  const std::string weights = json.value("weight_dtype", "fp32");
  return weights == "fp32" || weights == json.value("dtype", "bf16");
}

// Whether the operator's rows are those of sequences.
bool is_over_sequences(const std::string& op) {
  const Result<OpSpecPtr> spec = smallest_op_spec(op);
  return spec.ok() && has_sequences((*spec)->signature(Direction::kForward));
}

std::vector<RowCase> cases(const Json& common, bool of_sequences) {
  std::vector<RowCase> all;
  for (const std::filesystem::path& file : case_files()) {
    const std::string op = file.parent_path().filename().native();
    if (is_over_sequences(op) != of_sequences) continue;
    RowCase plain{op, op, {{"op", op}}, nullptr};
    plain.json.update(known_to(op, common));
    std::vector<RowCase> cases;
    Json lists = Json::parse(std::ifstream(file));
    if (!lists.is_array()) lists = Json::array({lists});
    for (const Json& parameters : lists) {
      std::vector<RowCase> products = {plain};
      for (const auto& [parameter, values] : parameters.items()) {
        std::vector<RowCase> more;
        for (const RowCase& before : products) {
          for (const Json& value : values) more.push_back(with(before, parameter, value));
        }
        products = std::move(more);
      }
      cases.insert(cases.end(), products.begin(), products.end());
    }
    for (RowCase& row : cases) {
      if (!goes_with_rows(row.json)) continue;
      Result<OpSpecPtr> spec = parse_op_spec(row.json, row.name);
      if (!spec.ok()) throw std::runtime_error(file.native() + ": " + spec.status().message());
      row.spec = std::dynamic_pointer_cast<const RowSpec>(*spec);
      if (!row.spec) throw std::runtime_error(file.native() + ": " + op + " is not of the row family");
      all.push_back(std::move(row));
    }
  }
  if (all.empty()) throw std::runtime_error("no cases.json in " + HSTUJIT_OPERATOR_TESTS);
  return all;
}

}  // namespace

std::vector<RowCase> row_cases(const Json& common) { return cases(common, false); }
std::vector<RowCase> sequence_cases(const Json& common) { return cases(common, true); }

Lengths sequence_lengths(const OpSpec& spec, const std::vector<int64_t>& drawn) {
  Lengths lengths;
  for (const int64_t rows : drawn) lengths.max_seq_len = std::max(lengths.max_seq_len, rows);
  for (size_t b = 0; b < drawn.size(); ++b) {
    const GeneratedRows rows = spec.generated_rows(static_cast<int64_t>(b), drawn[b], lengths.max_seq_len);
    lengths.rows.push_back(rows.rows);
    lengths.num_targets.push_back(static_cast<int64_t>(b) * rows.rows / static_cast<int64_t>(drawn.size()));
    for (const auto& [axis, count] : rows.others) lengths.other_rows[axis].push_back(count);
  }
  return lengths;
}

}  // namespace hstujit
