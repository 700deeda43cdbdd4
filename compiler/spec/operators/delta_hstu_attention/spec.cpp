#include "compiler/spec/operators/delta_hstu_attention/spec.h"

namespace hstujit {

OpSpecPtr parse_delta_hstu_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_attention_params<DeltaHstuAttentionParams>(json, path, mistakes);
  return params ? std::make_shared<DeltaHstuAttentionSpec>(*params) : nullptr;
}

Json schema_delta_hstu_attention() { return attention_schema<DeltaHstuAttentionParams>(); }

Json DeltaHstuAttentionSpec::to_json() const {
  Json json = operator_json("delta_hstu_attention", params());
  json["jagged_queries"] = query_rows() == QueryRows::kLastJagged;
  return json;
}

}  // namespace hstujit
