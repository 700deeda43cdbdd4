#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {

OpSpecPtr parse_hstu_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_attention_params<HstuAttentionParams>(json, path, mistakes);
  return params ? std::make_shared<HstuAttentionSpec>(*std::move(params)) : nullptr;
}

Json schema_hstu_attention() { return attention_schema<HstuAttentionParams>(); }

Json HstuAttentionSpec::to_json() const {
  Json json = {{"op", "hstu_attention"}};
  json.update(fields_to_json(params()));
  return json;
}

}  // namespace hstujit
