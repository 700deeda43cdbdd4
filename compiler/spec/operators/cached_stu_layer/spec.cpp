#include "compiler/spec/operators/cached_stu_layer/spec.h"

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/stu_layer/input_steps.h"
#include "compiler/spec/operators/stu_layer/output_steps.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

constexpr const char* kNewRows = "max_delta_len";

// The order of inputs.
std::vector<std::string> cached_inputs() {
  return {"x",         "input_norm_weight", "input_norm_bias",    "uvqk_weight",
          "uvqk_bias", "output_weight",     "output_norm_weight", "output_norm_bias",
          "k_cache",   "v_cache",           "kv_caching_offsets", "eps"};
}

// Cached rows of `side`, "k" or "v", then the new ones, which are columns of uvqk.
void add_cache(ProgramBuilder& program, const std::string& side, const OpSpecPtr& concat, int64_t first_column) {
  program.step(concat, Direction::kForward,
               {{"left", {side + "_cache", -1, "cached rows of all sequences"}},
                {"right", {"uvqk", first_column}},
                {"out", {"full_" + side}},
                {"offsets_left",
                 {"kv_caching_offsets", -1, "first cached row of each sequence, then the number of cached rows"}},
                {"max_len_right", {kNewRows, -1, "new rows of each sequence"}}});
}

// Null where there are mistakes.
OpSpecPtr concat_of(const CachedStuLayerParams& params, int64_t width, int64_t alignment, const std::string& path,
                    Mistakes& mistakes) {
  return parse_op_spec(step_json("concat_2d_jagged", {{"width", width},
                                                      {"dtype", to_string(params.dtype)},
                                                      {"alignment", alignment},
                                                      {"offsets_dtype", to_string(params.offsets_dtype)},
                                                      {"dense_right", true}}),
                       path, mistakes);
}

}  // namespace

OpSpecPtr parse_cached_stu_layer(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_layer_params<CachedStuLayerParams>(json, path, mistakes);
  if (!params) return nullptr;
  const auto input = StuInputSteps::make(*params, *params, *params, path, mistakes, {}, params->silu_uvqk);
  const StuGate gate = StuGate::of_layer(*params);
  const auto output = StuOutputSteps::make(gate, *params, *params, path, mistakes);
  if (!input || !output) return nullptr;
  const StuWidths& widths = input->widths();
  const OpSpecPtr concat_k = concat_of(*params, widths.qk, widths.alignment, path, mistakes);
  const OpSpecPtr concat_v = concat_of(*params, widths.v, widths.alignment, path, mistakes);
  if (concat_k == nullptr || concat_v == nullptr) return nullptr;
  DeltaHstuAttentionParams delta;
  static_cast<HstuAttentionParams&>(delta) = attention_of<HstuAttentionParams>(*params);

  const Dimension all = Dimension::of(std::string(kSequenceAxis)), new_rows = Dimension::uniform(kNewRows);
  ProgramBuilder program;
  program.inputs(cached_inputs());
  program.rows(new_rows);
  input->project(program, /*kept=*/false);
  program.temporary("attn", params->dtype, widths.v);
  program.rows(all);
  for (const auto& [name, width] : {std::pair("full_k", widths.qk), std::pair("full_v", widths.v)}) {
    program.matrix(ArgumentRole::kOutput, name, params->dtype, width, "seq_offsets",
                   "of each sequence the cached rows, then the new ones");
  }
  add_cache(program, "k", concat_k, widths.first_k());
  add_cache(program, "v", concat_v, widths.first_v());
  program.step(std::make_shared<DeltaHstuAttentionSpec>(delta), Direction::kForward,
               {{"q", {"uvqk", widths.first_q()}}, {"k", {"full_k", 0}}, {"v", {"full_v", 0}}, {"out", {"attn", 0}}});
  program.rows(new_rows);
  output->compute(program, {"attn"}, {"uvqk", 0}, /*kept=*/false);
  return std::make_shared<CachedStuLayerSpec>(*params, program.finish());
}

Json schema_cached_stu_layer() { return attention_schema<CachedStuLayerParams>(); }

Json CachedStuLayerSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
