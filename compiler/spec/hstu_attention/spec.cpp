#include "compiler/spec/hstu_attention/spec.h"

namespace hstujit {

Result<OpSpecPtr> parse_hstu_attention(const Json& json, const std::string& path) {
  HSTUJIT_ASSIGN_OR_RETURN(HstuAttentionParams params, read_attention_params<HstuAttentionParams>(json, path));
  return OpSpecPtr(std::make_shared<HstuAttentionSpec>(std::move(params)));
}

Json schema_hstu_attention() { return attention_schema<HstuAttentionParams>(); }

Json HstuAttentionSpec::to_json() const {
  Json json = {{"op", "hstu_attention"}};
  json.update(fields_to_json(params()));
  return json;
}

}  // namespace hstujit
