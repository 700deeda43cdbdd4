#include "compiler/spec/operators/hstu_attention/spec.h"

#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"

namespace hstujit {

namespace {

struct OwnParams : HstuAttentionParams {
  static constexpr auto fields() {
    return std::tuple_cat(HstuAttentionParams::fields(),
                          std::make_tuple(field("adds_gradients", &OwnParams::adds_gradients, kAddsGradientsDoc),
                                          field("dropout", &OwnParams::attn_dropout, kAttentionDropoutDoc),
                                          field("seed_tensor", &OwnParams::attn_seed_tensor, kSeedTensorDoc)));
  }
};

}  // namespace

OpSpecPtr parse_hstu_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_attention_params<OwnParams>(json, path, mistakes);
  return params ? std::make_shared<HstuAttentionSpec>(*std::move(params)) : nullptr;
}

Json schema_hstu_attention() { return attention_schema<OwnParams>(); }

// Instances without them keep the JSON, and the keys, that they have had before these fields existed.
Json HstuAttentionSpec::to_json() const {
  Json json = operator_json("hstu_attention", params());
  if (params().adds_gradients) json["adds_gradients"] = true;
  if (params().attn_dropout) json["dropout"] = true;
  if (params().attn_seed_tensor) json["seed_tensor"] = true;
  return json;
}

}  // namespace hstujit
