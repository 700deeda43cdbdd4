// Gradients of a layer and of its halves.
#include "tests/operators/stu_layer/stu_gradient.h"

namespace hstujit {
namespace {

TEST(StuLayerGradient, IsThatOfForward) {
  const Json fp16 = {{"dtype", "fp16"}};
  Json kept = fp16, rms = fp16;
  kept.update({{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}, {"dropout", true}});
  rms.update({{"norm", "rms_norm"}, {"uvqk_bias", false}, {"group_norm", true}, {"concat_u", false}});
  expect_gradients(stu("stu_layer", fp16), 8);
  expect_gradients(stu("stu_layer", kept), 8);
  expect_gradients(stu("stu_layer", rms), 5);
  Json groups = fp16, again = fp16, wide = fp16;
  groups.update({{"backward_head_groups", 2}});
  again.update({{"recompute_attn", true}, {"backward_head_groups", 2}});
  wide.update({{"attn_dim", 16}});
  for (const Json& less_memory : {groups, again, wide}) expect_gradients(stu("stu_layer", less_memory), 8);
  expect_gradients(stu("stu_layer", {{"dtype", "fp32"}}), 8);
}

TEST(StuLayerGradient, WithSiluOnAllOfTheProjection) {
  const Json silu = {{"dtype", "fp16"}, {"silu_uvqk", true}};
  for (const Json& more :
       {Json::object(), Json({{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}}),
        Json({{"backward_head_groups", 2}}), Json({{"recompute_attn", true}}),
        Json({{"recompute_attn", true}, {"recompute_uvqk", false}, {"backward_head_groups", 2}}),
        Json({{"residual", false}, {"concat_u", false}, {"concat_x", false}})}) {
    Json json = silu;
    json.update(more);
    expect_gradients(stu("stu_layer", json), 8);
  }
  Json stack = silu;
  stack.update({{"layers", 2}, {"recompute_uvqk", false}});
  expect_gradients(stu("stu_stack", stack), 8);
}

TEST(StuLayerGradient, OfHalvesIsThatOfForward) {
  const Json fp16 = {{"dtype", "fp16"}};
  expect_gradients(stu("hstu_preprocess_and_attention", fp16), 5);
  Json gated = fp16;
  gated.update({{"mul_u_activation", "sigmoid"}, {"concat_x", false}});
  expect_gradients(stu("hstu_compute_output", fp16), 5);
  expect_gradients(stu("hstu_compute_output", gated), 5);
}

}  // namespace
}  // namespace hstujit
