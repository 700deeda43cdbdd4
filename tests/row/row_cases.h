// Instances of every operator of the row family, which the tests of all layers go over. An operator says in
// tests/operators/<op>/cases.json which values of its parameters are tried, each with each:
//
//   {"weight": [true, false], "silu": [true, false]}
//
// or a list of such objects, where each with each would be too many. A case is named after what is on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/spec/row_spec.h"
#include "compiler/support/json.h"

namespace hstujit {

struct RowCase {
  std::string name;  // "rms_norm_weight_silu": the operator, and what is on
  std::string op;
  nlohmann::ordered_json json;  // as a config has it
  std::shared_ptr<const RowSpec> spec;
};

// `common` are parameters of all cases, at least "width".
// Those whose rows are of no sequences, and those whose rows are. An operator takes of `common` what it knows. A case
// whose weights are of a type that rows of `common` do not go with is left out.
std::vector<RowCase> row_cases(const nlohmann::ordered_json& common);
std::vector<RowCase> sequence_cases(const nlohmann::ordered_json& common);

// Sequences of so many rows, with what the operator takes of each: from no targets to nearly all rows.
Lengths sequence_lengths(const OpSpec& spec, const std::vector<int64_t>& drawn);

}  // namespace hstujit
