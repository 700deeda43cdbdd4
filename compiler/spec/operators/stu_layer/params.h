// Parameters of stu_layer and of its halves, hstu_preprocess_and_attention and hstu_compute_output.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "compiler/spec/alignment.h"
#include "compiler/spec/gemm_spec.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/spec/operators/hstu_norm_mul_dropout/spec.h"
#include "compiler/spec/program.h"
#include "compiler/spec/row_spec.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

// The fields of attention as an operator with products has them.
constexpr auto attention_fields_with_products() {
  constexpr auto narrowed = [](auto field) {
    if (field.name == "dtype") {
      field.doc = "data type of rows, of q, k and v, and of the projections' weights";
    }
    if (field.name == "alignment") field.choices = "16";  // StuWidths::alignment says what steps have
    return field;
  };
  return std::apply([&](const auto&... fields) { return std::make_tuple(narrowed(fields)...); },
                    HstuAttentionParams::fields());
}

// Parameters of both halves.
struct StuParams {
  int64_t width = 0;  // D
  std::string norm = "layer_norm";
  DataType weight_dtype = DataType::kFp32;
  int64_t typical_rows = GemmParams().typical_rows;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(
        field("width", &P::width, "elements of a row of x", 1, RowParams::kMaxWidth),
        field("norm", &P::norm, "what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight")
            .one_of("layer_norm rms_norm"),
        field("weight_dtype", &P::weight_dtype,
              "data type of the norms' weights and biases, and of their gradients: fp32 or dtype")
            .one_of("bf16 fp16 fp32"),
        field("typical_rows", &P::typical_rows,
              "rows that a launch has, about: chooses the kernels of products, which are right for any number", 1,
              kMaxSeqLen));
  }
};

struct StuTraining {
  bool training = true;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(
        field("training", &P::training, "there is a backward direction, and forward gives what that takes"));
  }
};

// Parameters of the half up to attention.
struct StuInputParams {
  bool uvqk_bias = true;
  bool recompute_normed_x = true;
  bool recompute_uvqk = true;

  template <typename P>
  static constexpr auto bias_field() {
    return std::make_tuple(field("uvqk_bias", &P::uvqk_bias, "takes a bias, added to each row of the projection"));
  }
  template <typename P>
  static constexpr auto fields_of() {
    return std::tuple_cat(
        bias_field<P>(), std::make_tuple(field("recompute_normed_x", &P::recompute_normed_x,
                                               "backward normalises x again; forward gives normed_x where it does not"),
                                         field("recompute_uvqk", &P::recompute_uvqk,
                                               "backward projects again; forward gives uvqk where it does not")));
  }
};

// Parameters in which layers of public packages differ.
struct StuVariantParams {
  bool silu_uvqk = false;
  bool residual = true;

  template <typename P>
  static constexpr auto silu_field() {
    return std::make_tuple(field("silu_uvqk", &P::silu_uvqk, "applies silu to u, v, q and k; where not, to u alone"));
  }
  template <typename P>
  static constexpr auto fields_of() {
    return std::tuple_cat(silu_field<P>(), std::make_tuple(field("residual", &P::residual, "adds x to the result")));
  }
};

// Parameters of the half behind attention.
struct StuOutputParams {
  bool group_norm = false;
  bool concat_u = true;
  bool concat_x = true;
  bool dropout = false;
  bool seed_tensor = false;
  bool recompute_y = true;

  template <typename P>
  static constexpr auto gate_fields() {
    return std::make_tuple(
        field("group_norm", &P::group_norm, "normalises the columns of each head of the attention output apart"),
        field("concat_u", &P::concat_u, "y begins with the columns of u"),
        field("concat_x", &P::concat_x, "the columns of the attention output come before those of the product"));
  }
  template <typename P>
  static constexpr auto fields_of() {
    return std::tuple_cat(
        gate_fields<P>(),
        std::make_tuple(
            field("dropout", &P::dropout,
                  "launches take dropout_ratio, the part of elements of y that become 0, a seed and an offset"),
            field("seed_tensor", &P::seed_tensor, kSeedTensorDoc),
            field("recompute_y", &P::recompute_y, "backward computes y again; forward gives y where it does not")));
  }
};

// Parameters of whole layers with which backward takes less memory, and more time.
struct StuMemoryParams {
  bool recompute_attn = false;
  int64_t backward_head_groups = 1;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(
        field("recompute_attn", &P::recompute_attn,
              "backward computes the attention output again; forward gives attn where it does not"),
        field("backward_head_groups", &P::backward_head_groups,
              "attention's backward, and the projection that is computed again for it, go through the heads in so many "
              "groups, for less memory: a divisor of heads",
              1, 1024));
  }
};

// Selects the rows of the result that a whole layer computes, and how their dropout is numbered.
struct StuTargetParams {
  bool targets_only = false;
  bool row_numbers = false;

  template <typename P>
  static constexpr auto fields_of() {
    return std::make_tuple(field("targets_only", &P::targets_only,
                                 "launches take seq_offsets_q: the result is that of the last rows of each sequence"),
                           field("row_numbers", &P::row_numbers, kRowNumbersDoc));
  }
};

// A matrix of a layer: a value of the program, or columns of one.
struct StuMatrix {
  std::string name;
  int64_t first = -1;  // -1: all columns

  ProgramValue all(std::string_view doc = {}) const { return {name, first, doc}; }
  ProgramValue columns(int64_t column) const { return {name, std::max<int64_t>(first, 0) + column}; }
};

// Columns of a matrix that nothing is in yet, or any more; none where `columns` is 0.
struct StuColumns {
  StuMatrix matrix;
  int64_t first = 0, columns = 0;
};

// Names of a layer's values in a program. Those of a stack have the layer's number: weights and their gradients are
// stacked along a first axis, kept matrices stand side by side, and tensors between steps have names of their own.
class StuNames {
 public:
  StuNames() = default;
  // `adds`: backward of another layer came before, and wrote the gradients of what layers share.
  explicit StuNames(int64_t layer, bool adds = false) : layer_(layer), adds_(adds) {}

  bool adds() const { return adds_; }

  ProgramValue weight(std::string name, std::string_view doc = {}, int64_t first_column = -1) const {
    return {std::move(name), first_column, doc, 0, layer_};
  }
  // Offset of random numbers, which differs between layers of a stack.
  ProgramValue offset() const { return {"offset", -1, {}, static_cast<double>(std::max<int64_t>(layer_, 0))}; }
  StuMatrix between(const std::string& name) const { return {layer_ < 0 ? name : name + "_" + std::to_string(layer_)}; }
  // One of so many columns.
  StuMatrix kept(const std::string& name, int64_t columns) const { return {name, layer_ < 0 ? -1 : layer_ * columns}; }

 private:
  int64_t layer_ = -1;
  bool adds_ = false;
};

// The widths that follow.
struct StuWidths {
  int64_t v = 0, qk = 0;  // of all heads
  // Bytes that columns of u, v, q and k begin at multiples of, in matrices of these, or the columns of a group of
  // heads.
  int64_t alignment = 16;

  StuWidths(int64_t heads, int64_t attn_dim, int64_t hidden_dim, DataType dtype, int64_t groups = 1)
      : v(heads * hidden_dim), qk(heads * attn_dim) {
    alignment = std::min(alignment, row_alignment(v / groups | qk / groups, dtype));
  }
  // Columns of the projection, in the order u, v, q, k, and where they begin.
  int64_t uvqk() const { return 2 * (v + qk); }
  int64_t first_v() const { return v; }
  int64_t first_q() const { return 2 * v; }
  int64_t first_k() const { return 2 * v + qk; }
};

// `what` has so many columns because there are so many heads: more than `allowed`, "at most 16384".
inline void refuse_heads(int64_t heads, std::string_view what, std::string_view allowed, const std::string& path,
                         Mistakes& mistakes) {
  const std::string place = join_path(path, "heads");
  mistakes.check(
      place, Status(Code::kInvalidConfig, fmt::format("{} is {}, so {}; allowed: {}", place, heads, what, allowed)));
}

// A product among a layer's steps, addmm or addmm_wgrad, from k columns to n. `alignment`: that of its matrices, where
// they are columns of others.
inline Json product_of(const StuParams& stu, std::string_view op, int64_t k, int64_t n, DataType dtype,
                       MatmulPrecision precision, int64_t alignment = GemmParams().alignment) {
  return step_json(op, {{"k", k},
                        {"n", n},
                        {"dtype", to_string(dtype)},
                        {"precision", to_string(precision)},
                        {"typical_rows", stu.typical_rows},
                        {"alignment", alignment}});
}

// The parameters of an operator with attention and products, or nothing where there are mistakes. The alignment is
// that of whole rows; attention, whose heads may begin elsewhere, brings its own to the canonical form.
template <typename P>
std::optional<P> read_layer_params(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_attention_params<P>(json, path, mistakes);
  if (!params || !check_weight_dtype(params->weight_dtype, params->dtype, path, mistakes)) return std::nullopt;
  params->alignment = P().alignment;
  return params;
}

// Attention among a layer's steps.
template <typename P>
P attention_of(P attention) {
  make_canonical(attention);
  return attention;
}

}  // namespace hstujit
