// Instances of construct_full_kv and update_kv_cache, and what their tests read of calls.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/spec/program.h"
#include "compiler/support/json.h"

namespace hstujit {

// Rows of k have 16 elements, those of v 32.
inline Result<OpSpecPtr> parse_kv(const char* op, const nlohmann::ordered_json& more = {}) {
  nlohmann::ordered_json json = {{"op", op}, {"heads", 2}, {"attn_dim", 8}, {"hidden_dim", 16}};
  if (!more.is_null()) json.update(more);
  return parse_op_spec(json, "ops[0]");
}

// "k bf16(L, 16), delta_size".
inline std::string arguments_of(const OpSpec& spec) {
  std::string text;
  for (const Argument& argument : spec.signature(Direction::kForward)) {
    text += text.empty() ? argument.name : ", " + argument.name;
    if (argument.kind == ArgumentKind::kTensor)
      text += fmt::format(" {}{}", to_string(argument.dtype), shape_text(argument));
  }
  return text;
}

inline HostTensor& tensor_of(const OpSpec& spec, std::vector<HostValue>& values, std::string_view name) {
  return values.at(static_cast<size_t>(find_argument(spec.signature(Direction::kForward), name))).tensor;
}

// The first elements of rows: each row holds one number.
inline std::vector<double> rows_of(const HostTensor& tensor) {
  std::vector<double> rows;
  const auto width = static_cast<size_t>(tensor.shape.at(1));
  for (size_t i = 0; i < tensor.reals.size(); i += width) {
    rows.push_back(tensor.reals[i]);
    EXPECT_EQ(tensor.reals[i], tensor.reals[i + width - 1]);
  }
  return rows;
}

inline HostTensor tensor_of_rows(const std::vector<double>& rows, int64_t width) {
  HostTensor tensor{{static_cast<int64_t>(rows.size()), width}, {}, {}};
  for (const double row : rows) tensor.reals.insert(tensor.reals.end(), static_cast<size_t>(width), row);
  return tensor;
}

}  // namespace hstujit
