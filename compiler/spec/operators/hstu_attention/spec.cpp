#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {

OpSpecPtr parse_hstu_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_attention_params<HstuAttentionParams>(json, path, mistakes);
  return params ? std::make_shared<HstuAttentionSpec>(*std::move(params)) : nullptr;
}

Json schema_hstu_attention() { return attention_schema<HstuAttentionParams>(); }

Json HstuAttentionSpec::to_json() const { return operator_json("hstu_attention", params()); }

}  // namespace hstujit
