#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {

namespace {

struct OwnParams : HstuAttentionParams {
  static constexpr auto fields() {
    return std::tuple_cat(HstuAttentionParams::fields(),
                          std::make_tuple(field("adds_gradients", &OwnParams::adds_gradients, kAddsGradientsDoc)));
  }
};

}  // namespace

OpSpecPtr parse_hstu_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_attention_params<OwnParams>(json, path, mistakes);
  return params ? std::make_shared<HstuAttentionSpec>(*std::move(params)) : nullptr;
}

Json schema_hstu_attention() { return attention_schema<OwnParams>(); }

// Instances that add nothing keep the JSON, and the keys, that they have had before the field existed.
Json HstuAttentionSpec::to_json() const {
  Json json = operator_json("hstu_attention", params());
  if (params().adds_gradients) json["adds_gradients"] = true;
  return json;
}

}  // namespace hstujit
