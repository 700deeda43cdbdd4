#include "compiler/spec/operators/norm_attention/spec.h"

#include <fmt/format.h>

#include <memory>

#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/row_spec.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

// Columns of x, and of the rows that the norm gives.
int64_t width_of(const HstuAttentionParams& params) { return params.heads * (2 * params.attn_dim + params.hidden_dim); }

// Columns of the rows that the norm gives, and of their gradient: v, q, k, as the public uvqk projection has them.
std::map<std::string, ProgramValue> columns(const HstuAttentionParams& params, const std::string& rows,
                                            const std::string& prefix) {
  const int64_t v = params.heads * params.hidden_dim, qk = params.heads * params.attn_dim;
  return {{prefix + "v", {rows, 0}}, {prefix + "q", {rows, v}}, {prefix + "k", {rows, v + qk}}};
}

Program forward(const HstuAttentionParams& params, const OpSpecPtr& norm, const OpSpecPtr& attention) {
  ProgramBuilder program;
  program.temporary("normed", params.dtype, width_of(params));
  program.step(norm, Direction::kForward, {{"out", {"normed"}}});
  program.step(attention, Direction::kForward, columns(params, "normed", ""));
  return program.finish();
}

Program backward(const HstuAttentionParams& params, const OpSpecPtr& norm, const OpSpecPtr& attention) {
  std::map<std::string, ProgramValue> operands = columns(params, "normed", "");
  operands.merge(columns(params, "dnormed", "d"));
  ProgramBuilder program;
  program.temporary("normed", params.dtype, width_of(params));
  program.temporary("dnormed", params.dtype, width_of(params));
  program.step(norm, Direction::kForward, {{"out", {"normed"}}});
  program.step(attention, Direction::kBackward, operands);
  program.step(norm, Direction::kBackward, {{"dout", {"dnormed"}}});
  return program.finish();
}

}  // namespace

NormAttentionSpec::NormAttentionSpec(HstuAttentionParams attention, NormParams norm, const OpSpecPtr& attention_spec,
                                     const OpSpecPtr& norm_spec)
    : ProgramSpec(forward(attention, norm_spec, attention_spec), backward(attention, norm_spec, attention_spec)),
      attention_(std::move(attention)),
      norm_(std::move(norm)) {}

OpSpecPtr parse_norm_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  Json of_attention = json, of_norm = Json::object();
  for (const std::string_view name : field_names<NormParams>()) {
    if (!json.contains(name)) continue;
    of_norm[std::string(name)] = json[std::string(name)];
    of_attention.erase(std::string(name));
  }
  const size_t before = mistakes.count();
  NormParams norm;
  read_fields(of_norm, path, norm, mistakes);
  const bool has_bias = norm.norm == "layer_norm";
  if (mistakes.count() == before && !has_bias && of_norm.value("bias", false)) {
    const std::string place = join_path(path, "bias");
    mistakes.check(place, Status(Code::kInvalidConfig,
                                 fmt::format("{} is true, but {} has no bias; allowed: false", place, norm.norm)));
  }
  const auto params = read_attention_params<HstuAttentionParams>(of_attention, path, mistakes);
  if (params && width_of(*params) > RowParams::kMaxWidth) {
    const std::string place = join_path(path, "heads");
    mistakes.check(
        place, Status(Code::kInvalidConfig,
                      fmt::format("{} is {}, so rows have {} columns v, q and k; allowed: at most {} columns", place,
                                  params->heads, width_of(*params), RowParams::kMaxWidth)));
  }
  if (!params || mistakes.count() != before) return nullptr;
  norm.bias = norm.bias && has_bias;
  if (!norm.weight && !norm.bias) norm.weight_dtype = NormParams().weight_dtype;

  Json step = step_json(norm.norm, {{"width", width_of(*params)},
                                    {"dtype", to_string(params->dtype)},
                                    {"weight_dtype", to_string(norm.weight_dtype)},
                                    {"alignment", params->alignment},
                                    {"weight", norm.weight}});
  if (has_bias) step["bias"] = norm.bias;
  const OpSpecPtr norm_spec = parse_op_spec(step, path, mistakes);
  if (norm_spec == nullptr) return nullptr;
  return std::make_shared<NormAttentionSpec>(*params, norm, std::make_shared<HstuAttentionSpec>(*params), norm_spec);
}

Json schema_norm_attention() {
  Json schema = attention_schema<HstuAttentionParams>();
  schema["properties"].update(fields_schema<NormParams>()["properties"]);
  return schema;
}

Json NormAttentionSpec::to_json() const {
  Json json = step_json("norm_attention", {});
  json.update(fields_to_json(attention_));
  json.update(fields_to_json(norm_));
  return json;
}

}  // namespace hstujit
