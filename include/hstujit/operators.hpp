// A struct for each operator: its parameters, with their defaults and what they may be.
//
// Written by `make docs` from the field lists that validate them; a test keeps the two equal. json() is what
// hstujit_op_create takes, and an entry of a config but for its name and lengths (docs/config.md). It leaves out
// what has its default. Nothing is checked here: the library says what is wrong with a value, and what is allowed.
#ifndef HSTUJIT_OPERATORS_HPP
#define HSTUJIT_OPERATORS_HPP

#include <cstdint>
#include <string>

#include "hstujit/data_type.hpp"

namespace hstujit::api {

enum class AttnScale { none, rows, scalar };
inline const char* to_string(AttnScale value) {
  switch (value) {
    case AttnScale::none:
      return "none";
    case AttnScale::rows:
      return "rows";
    case AttnScale::scalar:
      return "scalar";
  }
  return "";
}

enum class Input { none, vector, matrix };
inline const char* to_string(Input value) {
  switch (value) {
    case Input::none:
      return "none";
    case Input::vector:
      return "vector";
    case Input::matrix:
      return "matrix";
  }
  return "";
}

enum class MulUActivation { none, sigmoid, silu };
inline const char* to_string(MulUActivation value) {
  switch (value) {
    case MulUActivation::none:
      return "none";
    case MulUActivation::sigmoid:
      return "sigmoid";
    case MulUActivation::silu:
      return "silu";
  }
  return "";
}

enum class Norm { layer_norm, rms_norm };
inline const char* to_string(Norm value) {
  switch (value) {
    case Norm::layer_norm:
      return "layer_norm";
    case Norm::rms_norm:
      return "rms_norm";
  }
  return "";
}

enum class Precision { tf32, ieee };
inline const char* to_string(Precision value) {
  switch (value) {
    case Precision::tf32:
      return "tf32";
    case Precision::ieee:
      return "ieee";
  }
  return "";
}

enum class Score { silu, relu, relu2, sigmoid, tanh, gelu, identity };
inline const char* to_string(Score value) {
  switch (value) {
    case Score::silu:
      return "silu";
    case Score::relu:
      return "relu";
    case Score::relu2:
      return "relu2";
    case Score::sigmoid:
      return "sigmoid";
    case Score::tanh:
      return "tanh";
    case Score::gelu:
      return "gelu";
    case Score::identity:
      return "identity";
  }
  return "";
}

enum class TimeBucketFn { sqrt, log };
inline const char* to_string(TimeBucketFn value) {
  switch (value) {
    case TimeBucketFn::sqrt:
      return "sqrt";
    case TimeBucketFn::log:
      return "log";
  }
  return "";
}

// docs/parameters.md, "add_positional_embeddings".
struct AddPositionalEmbeddings {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // data type of tables, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // launches take num_targets, how many targets each sequence ends with
  bool num_targets = false;
  // each target is two rows: an item and an action
  bool interleave_targets = false;

  std::string json() const {
    detail::InstanceText text("add_positional_embeddings");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("num_targets", num_targets, false);
    text.add("interleave_targets", interleave_targets, false);
    return text.str();
  }
};

// docs/parameters.md, "add_timestamp_positional_embeddings".
struct AddTimestampPositionalEmbeddings {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // data type of tables, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // launches take num_targets, how many targets each sequence ends with
  bool num_targets = false;
  // each target is two rows: an item and an action
  bool interleave_targets = false;
  // how an age becomes a bucket; sqrt, log
  TimeBucketFn time_bucket_fn = TimeBucketFn::sqrt;
  // launches take query_time, which ages are counted to; else that is a sequence's last timestamp
  bool query_time = false;
  // alpha times a row, and the sum of its two embeddings, are rounded to dtype before they are added
  bool round_embeddings = false;

  std::string json() const {
    detail::InstanceText text("add_timestamp_positional_embeddings");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("num_targets", num_targets, false);
    text.add("interleave_targets", interleave_targets, false);
    text.add("time_bucket_fn", time_bucket_fn, TimeBucketFn::sqrt);
    text.add("query_time", query_time, false);
    text.add("round_embeddings", round_embeddings, false);
    return text.str();
  }
};

// docs/parameters.md, "addmm".
struct Addmm {
  // columns of mat1, which the product sums over; 1 to 65536; must be given
  std::int64_t k = 0;
  // columns of the result; 1 to 65536; must be given
  std::int64_t n = 0;
  // data type of matrices; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // rows that a launch has, about: chooses the kernel, which is right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // bytes that data pointers and strides of tensors are multiples of, but for those whose rows are not; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // what is added: nothing, a row (n) to all rows, or a matrix (L, n); none, vector, matrix
  Input input = Input::none;
  // mat2 is (n, k), as the weight of nn.Linear
  bool transpose_mat2 = false;
  // silu is applied to so many columns of the result, the first ones: at most n; 0 to 65536
  std::int64_t silu_columns = 0;

  std::string json() const {
    detail::InstanceText text("addmm");
    text.add("k", k);
    text.add("n", n);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("alignment", alignment, 16);
    text.add("input", input, Input::none);
    text.add("transpose_mat2", transpose_mat2, false);
    text.add("silu_columns", silu_columns, 0);
    return text.str();
  }
};

// docs/parameters.md, "addmm_wgrad".
struct AddmmWgrad {
  // columns of mat1; 1 to 65536; must be given
  std::int64_t k = 0;
  // columns of dout; 1 to 65536; must be given
  std::int64_t n = 0;
  // data type of matrices; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // rows that a launch has, about: chooses the kernel, which is right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // bytes that data pointers and strides of tensors are multiples of, but for those whose rows are not; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // the gradient is (n, k), as that of nn.Linear
  bool transpose_mat2 = false;
  // the gradient of a bias, too: sums of the columns of dout
  bool bias = false;

  std::string json() const {
    detail::InstanceText text("addmm_wgrad");
    text.add("k", k);
    text.add("n", n);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("alignment", alignment, 16);
    text.add("transpose_mat2", transpose_mat2, false);
    text.add("bias", bias, false);
    return text.str();
  }
};

// docs/parameters.md, "bias_add".
struct BiasAdd {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // data type of weight and bias, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;

  std::string json() const {
    detail::InstanceText text("bias_add");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("alignment", alignment, 16);
    return text.str();
  }
};

// docs/parameters.md, "cached_stu_layer".
struct CachedStuLayer {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows, of q, k and v, and of the projections' weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // takes a bias, added to each row of the projection
  bool uvqk_bias = true;
  // applies silu to u, v, q and k; where not, to u alone
  bool silu_uvqk = false;
  // adds x to the result
  bool residual = true;
  // normalises the columns of each head of the attention output apart
  bool group_norm = false;
  // y begins with the columns of u
  bool concat_u = true;
  // the columns of the attention output come before those of the product
  bool concat_x = true;

  std::string json() const {
    detail::InstanceText text("cached_stu_layer");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("uvqk_bias", uvqk_bias, true);
    text.add("silu_uvqk", silu_uvqk, false);
    text.add("residual", residual, true);
    text.add("group_norm", group_norm, false);
    text.add("concat_u", concat_u, true);
    text.add("concat_x", concat_x, true);
    return text.str();
  }
};

// docs/parameters.md, "complete_cumsum".
struct CompleteCumsum {
  // type of lengths and offsets; int32, int64
  DataType dtype = DataType::int64;

  std::string json() const {
    detail::InstanceText text("complete_cumsum");
    text.add("dtype", dtype, DataType::int64);
    return text.str();
  }
};

// docs/parameters.md, "concat_2d_jagged".
struct Concat2dJagged {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // the left side has max_len_left rows of every sequence
  bool dense_left = false;
  // the right side has max_len_right rows of every sequence
  bool dense_right = false;
  // launches say how many rows of the right side come before the left one
  bool prefix = false;

  std::string json() const {
    detail::InstanceText text("concat_2d_jagged");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("dense_left", dense_left, false);
    text.add("dense_right", dense_right, false);
    text.add("prefix", prefix, false);
    return text.str();
  }
};

// docs/parameters.md, "construct_full_kv".
struct ConstructFullKv {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of k and v; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // type of offsets; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;

  std::string json() const {
    detail::InstanceText text("construct_full_kv");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    return text.str();
  }
};

// docs/parameters.md, "delta_hstu_attention".
struct DeltaHstuAttention {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of q, k, v and out; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // launches take seq_offsets_q: sequences may have different numbers of rows in q
  bool jagged_queries = false;

  std::string json() const {
    detail::InstanceText text("delta_hstu_attention");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("jagged_queries", jagged_queries, false);
    return text.str();
  }
};

// docs/parameters.md, "dense_to_jagged".
struct DenseToJagged {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;

  std::string json() const {
    detail::InstanceText text("dense_to_jagged");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    return text.str();
  }
};

// docs/parameters.md, "hstu_attention".
struct HstuAttention {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of q, k, v and out; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // backward takes drab_before and dattn_scale_before, and adds drab and dattn_scale to them: a sum over layers that
  // share rab or attn_scale
  bool adds_gradients = false;
  // launches take dropout_ratio, the part of the weights P that become 0, a seed and an offset
  bool dropout = false;
  // with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number
  bool seed_tensor = false;
  // forward launches of few tiles get a kernel of their own, tuned by itself
  bool small_batches = false;

  std::string json() const {
    detail::InstanceText text("hstu_attention");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("adds_gradients", adds_gradients, false);
    text.add("dropout", dropout, false);
    text.add("seed_tensor", seed_tensor, false);
    text.add("small_batches", small_batches, false);
    return text.str();
  }
};

// docs/parameters.md, "hstu_compute_output".
struct HstuComputeOutput {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of attn and u; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows and of the projection's weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // there is a backward direction, and forward gives what that takes
  bool training = true;
  // normalises the columns of each head of the attention output apart
  bool group_norm = false;
  // y begins with the columns of u
  bool concat_u = true;
  // the columns of the attention output come before those of the product
  bool concat_x = true;
  // launches take dropout_ratio, the part of elements of y that become 0, a seed and an offset
  bool dropout = false;
  // with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number
  bool seed_tensor = false;
  // backward computes y again; forward gives y where it does not
  bool recompute_y = true;
  // applies silu to the u that y begins with, with group_norm to both
  bool silu_u = false;
  // what is applied to the u that multiplies; none, sigmoid, silu
  MulUActivation mul_u_activation = MulUActivation::none;

  std::string json() const {
    detail::InstanceText text("hstu_compute_output");
    text.add("heads", heads, 1);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("training", training, true);
    text.add("group_norm", group_norm, false);
    text.add("concat_u", concat_u, true);
    text.add("concat_x", concat_x, true);
    text.add("dropout", dropout, false);
    text.add("seed_tensor", seed_tensor, false);
    text.add("recompute_y", recompute_y, true);
    text.add("silu_u", silu_u, false);
    text.add("mul_u_activation", mul_u_activation, MulUActivation::none);
    return text.str();
  }
};

// docs/parameters.md, "hstu_compute_uqvk".
struct HstuComputeUqvk {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and u; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows and of the projection's weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // there is a backward direction, and forward gives what that takes
  bool training = true;
  // takes a bias, added to each row of the projection
  bool uvqk_bias = true;
  // applies silu to u, v, q and k; where not, to u alone
  bool silu_uvqk = false;
  // backward normalises x again; forward gives normed_x where it does not
  bool recompute_normed_x = true;

  std::string json() const {
    detail::InstanceText text("hstu_compute_uqvk");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("training", training, true);
    text.add("uvqk_bias", uvqk_bias, true);
    text.add("silu_uvqk", silu_uvqk, false);
    text.add("recompute_normed_x", recompute_normed_x, true);
    return text.str();
  }
};

// docs/parameters.md, "hstu_norm_mul_dropout".
struct HstuNormMulDropout {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // data type of weight and bias, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // what normalises x: layer_norm or rms_norm; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // normalises the columns of each head apart
  bool group_norm = false;
  // heads of group_norm, each of width / heads columns; 1 to 64
  std::int64_t heads = 1;
  // what is applied to the u that multiplies; none, sigmoid, silu
  MulUActivation mul_u_activation = MulUActivation::none;
  // applies silu to the u of the result, with group_norm to both
  bool silu_u = false;
  // the result begins with the columns of u
  bool concat_u = false;
  // the columns of x come before those of the product
  bool concat_x = false;
  // launches take dropout_ratio, the part of elements that become 0, a seed and an offset
  bool dropout = false;
  // with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number
  bool seed_tensor = false;
  // with dropout, launches take row_numbers: a row drops what the row of that number drops
  bool row_numbers = false;

  std::string json() const {
    detail::InstanceText text("hstu_norm_mul_dropout");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("alignment", alignment, 16);
    text.add("norm", norm, Norm::layer_norm);
    text.add("group_norm", group_norm, false);
    text.add("heads", heads, 1);
    text.add("mul_u_activation", mul_u_activation, MulUActivation::none);
    text.add("silu_u", silu_u, false);
    text.add("concat_u", concat_u, false);
    text.add("concat_x", concat_x, false);
    text.add("dropout", dropout, false);
    text.add("seed_tensor", seed_tensor, false);
    text.add("row_numbers", row_numbers, false);
    return text.str();
  }
};

// docs/parameters.md, "hstu_preprocess_and_attention".
struct HstuPreprocessAndAttention {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows, of q, k and v, and of the projections' weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // there is a backward direction, and forward gives what that takes
  bool training = true;
  // takes a bias, added to each row of the projection
  bool uvqk_bias = true;
  // backward normalises x again; forward gives normed_x where it does not
  bool recompute_normed_x = true;
  // backward projects again; forward gives uvqk where it does not
  bool recompute_uvqk = true;
  // forward launches of few tiles get a kernel of their own, tuned by itself
  bool small_batches = false;

  std::string json() const {
    detail::InstanceText text("hstu_preprocess_and_attention");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("training", training, true);
    text.add("uvqk_bias", uvqk_bias, true);
    text.add("recompute_normed_x", recompute_normed_x, true);
    text.add("recompute_uvqk", recompute_uvqk, true);
    text.add("small_batches", small_batches, false);
    return text.str();
  }
};

// docs/parameters.md, "jagged_dense_bmm_broadcast_add".
struct JaggedDenseBmmBroadcastAdd {
  // columns of jagged, which the products sum over; 1 to 65536; must be given
  std::int64_t k = 0;
  // columns of the result; 1 to 65536; must be given
  std::int64_t n = 0;
  // data type of matrices; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides of tensors are multiples of, but for those whose rows are not; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // there is a bias
  bool bias = true;
  // bias is (L, n), and not a row of each sequence
  bool elementwise = false;
  // dense is (B, n, k)
  bool transpose_dense = false;

  std::string json() const {
    detail::InstanceText text("jagged_dense_bmm_broadcast_add");
    text.add("k", k);
    text.add("n", n);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("bias", bias, true);
    text.add("elementwise", elementwise, false);
    text.add("transpose_dense", transpose_dense, false);
    return text.str();
  }
};

// docs/parameters.md, "jagged_dense_broadcast_add".
struct JaggedDenseBroadcastAdd {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;

  std::string json() const {
    detail::InstanceText text("jagged_dense_broadcast_add");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    return text.str();
  }
};

// docs/parameters.md, "jagged_jagged_bmm".
struct JaggedJaggedBmm {
  // columns of left; 1 to 65536; must be given
  std::int64_t k = 0;
  // columns of right; 1 to 65536; must be given
  std::int64_t n = 0;
  // data type of matrices; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides of tensors are multiples of, but for those whose rows are not; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // the result is (B, n, k)
  bool transpose_out = false;
  // the gradient of a bias of each sequence, too: sums of the columns of its rows of right
  bool bias = false;

  std::string json() const {
    detail::InstanceText text("jagged_jagged_bmm");
    text.add("k", k);
    text.add("n", n);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("transpose_out", transpose_out, false);
    text.add("bias", bias, false);
    return text.str();
  }
};

// docs/parameters.md, "jagged_to_padded_dense".
struct JaggedToPaddedDense {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // launches take padding_value, what padding is filled with; else it is 0
  bool padding_value = false;

  std::string json() const {
    detail::InstanceText text("jagged_to_padded_dense");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("padding_value", padding_value, false);
    return text.str();
  }
};

// docs/parameters.md, "layer_norm".
struct LayerNorm {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // data type of weight and bias, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // takes a weight, a factor of each column
  bool weight = true;
  // takes a bias, added to each column
  bool bias = true;
  // x also goes around the norm: backward takes dresidual, its gradient there, and adds it to dx
  bool residual = false;

  std::string json() const {
    detail::InstanceText text("layer_norm");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("alignment", alignment, 16);
    text.add("weight", weight, true);
    text.add("bias", bias, true);
    text.add("residual", residual, false);
    return text.str();
  }
};

// docs/parameters.md, "norm_attention".
struct NormAttention {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of q, k, v and out; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // operator that normalises the rows; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // the norm takes a weight, a factor of each column
  bool weight = true;
  // layer_norm takes a bias, added to each column
  bool bias = true;
  // data type of weight and bias, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // forward launches of few tiles get a kernel of their own, tuned by itself
  bool small_batches = false;

  std::string json() const {
    detail::InstanceText text("norm_attention");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight", weight, true);
    text.add("bias", bias, true);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("small_batches", small_batches, false);
    return text.str();
  }
};

// docs/parameters.md, "place_last_rows".
struct PlaceLastRows {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;

  std::string json() const {
    detail::InstanceText text("place_last_rows");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    return text.str();
  }
};

// docs/parameters.md, "rms_norm".
struct RmsNorm {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // data type of weight and bias, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // takes a weight, a factor of each column
  bool weight = true;
  // applies silu to the result
  bool silu = false;
  // x also goes around the norm: backward takes dresidual, its gradient there, and adds it to dx
  bool residual = false;

  std::string json() const {
    detail::InstanceText text("rms_norm");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("alignment", alignment, 16);
    text.add("weight", weight, true);
    text.add("silu", silu, false);
    text.add("residual", residual, false);
    return text.str();
  }
};

// docs/parameters.md, "silu".
struct Silu {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;

  std::string json() const {
    detail::InstanceText text("silu");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    return text.str();
  }
};

// docs/parameters.md, "split_2d_jagged".
struct Split2dJagged {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // the left side has max_len_left rows of every sequence
  bool dense_left = false;
  // the right side has max_len_right rows of every sequence
  bool dense_right = false;
  // launches say how many rows of the right side come before the left one
  bool prefix = false;
  // the rows of the right side are written nowhere
  bool left_only = false;

  std::string json() const {
    detail::InstanceText text("split_2d_jagged");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("dense_left", dense_left, false);
    text.add("dense_right", dense_right, false);
    text.add("prefix", prefix, false);
    text.add("left_only", left_only, false);
    return text.str();
  }
};

// docs/parameters.md, "stu_layer".
struct StuLayer {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows, of q, k and v, and of the projections' weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // there is a backward direction, and forward gives what that takes
  bool training = true;
  // takes a bias, added to each row of the projection
  bool uvqk_bias = true;
  // backward normalises x again; forward gives normed_x where it does not
  bool recompute_normed_x = true;
  // backward projects again; forward gives uvqk where it does not
  bool recompute_uvqk = true;
  // applies silu to u, v, q and k; where not, to u alone
  bool silu_uvqk = false;
  // adds x to the result
  bool residual = true;
  // normalises the columns of each head of the attention output apart
  bool group_norm = false;
  // y begins with the columns of u
  bool concat_u = true;
  // the columns of the attention output come before those of the product
  bool concat_x = true;
  // launches take dropout_ratio, the part of elements of y that become 0, a seed and an offset
  bool dropout = false;
  // with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number
  bool seed_tensor = false;
  // backward computes y again; forward gives y where it does not
  bool recompute_y = true;
  // backward computes the attention output again; forward gives attn where it does not
  bool recompute_attn = false;
  // attention's backward, and the projection that is computed again for it, go through the heads in so many groups, for
  // less memory: a divisor of heads; 1 to 1024
  std::int64_t backward_head_groups = 1;
  // launches take seq_offsets_q: the result is that of the last rows of each sequence
  bool targets_only = false;
  // with dropout, launches take row_numbers: a row drops what the row of that number drops
  bool row_numbers = false;
  // forward launches of few tiles get a kernel of their own, tuned by itself
  bool small_batches = false;

  std::string json() const {
    detail::InstanceText text("stu_layer");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("training", training, true);
    text.add("uvqk_bias", uvqk_bias, true);
    text.add("recompute_normed_x", recompute_normed_x, true);
    text.add("recompute_uvqk", recompute_uvqk, true);
    text.add("silu_uvqk", silu_uvqk, false);
    text.add("residual", residual, true);
    text.add("group_norm", group_norm, false);
    text.add("concat_u", concat_u, true);
    text.add("concat_x", concat_x, true);
    text.add("dropout", dropout, false);
    text.add("seed_tensor", seed_tensor, false);
    text.add("recompute_y", recompute_y, true);
    text.add("recompute_attn", recompute_attn, false);
    text.add("backward_head_groups", backward_head_groups, 1);
    text.add("targets_only", targets_only, false);
    text.add("row_numbers", row_numbers, false);
    text.add("small_batches", small_batches, false);
    return text.str();
  }
};

// docs/parameters.md, "stu_stack".
struct StuStack {
  // number of layers S; 1 to 32; must be given
  std::int64_t layers = 0;
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of q and k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v and out; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of rows, of q, k and v, and of the projections' weights; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // matrix products of fp32 data; tf32, ieee
  Precision precision = Precision::tf32;
  // type of offsets, num_targets and num_contexts; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 16
  std::int64_t alignment = 16;
  // row i sees columns j <= i alone; contextual rows see the whole history
  bool causal = true;
  // launches take num_targets, how many of the last rows of each sequence are targets
  bool num_targets = false;
  // targets are in groups of this many rows; 1 to 268435456
  std::int64_t target_group_size = 1;
  // window in ids, as window_size=(w, 0) of FlashAttention; 0 means none, -1 together with causal=false means no mask
  // at all; -1 to 268435456
  std::int64_t max_attn_len = 0;
  // last ids of a sequence that ignore the window; 0 to 268435456
  std::int64_t min_full_attn_seq_len = 0;
  // leading rows that see the whole history; 0 to 268435456
  std::int64_t contextual_seq_len = 0;
  // launches take num_contexts, how many of the first rows of each sequence see the whole history
  bool num_contexts = false;
  // semi-local attention: local part; 0 to 268435456
  std::int64_t sla_k1 = 0;
  // semi-local attention: global part; 0 to 268435456
  std::int64_t sla_k2 = 0;
  // launches take attn_func, which columns each row sees, as this many ends of intervals: an odd number; it replaces
  // causal and all other fields of the mask; 0: none; 0 to 31
  std::int64_t attn_func = 0;
  // heads of attn_func, a divisor of heads; 0: 1 where launches take it; 0 to 1024
  std::int64_t attn_func_heads = 0;
  // no mask: every pair of a sequence is valid
  bool full_mask = false;
  // which pairs are valid, as a condition of row, col, n and targets, such as col <= row and row - col < 256; it
  // replaces causal and all other fields of the mask
  std::string mask = "";
  // pointwise score function: a name, or an expression of x, row, col, n, targets, head, heads and alpha; silu, relu,
  // relu2, sigmoid, tanh, gelu, identity
  ExpressionOr<Score> score = Score::silu;
  // tensors that the score or the mask reads, as declarations such as ts: row(int64), by_age: table(129, grad)
  std::string operands = "";
  // so many of the first heads have softmax over the valid columns in place of score and scale; 0 to 1024
  std::int64_t num_softmax_heads = 0;
  // what heads with softmax normalise, as an expression like score, such as x - 0.5 * (row - col); without it x
  std::string softmax_score = "";
  // launches take a relative bias rab with this many heads, a divisor of heads; 0: none; 0 to 1024
  std::int64_t rab_heads = 0;
  // launches take attn_scale in place of the scale, with a factor for these; none, rows, scalar
  AttnScale attn_scale = AttnScale::none;
  // backward returns the gradient of rab
  bool drab = true;
  // backward returns the gradient of attn_scale
  bool dattn_scale = true;
  // elements of a row of x; 1 to 16384; must be given
  std::int64_t width = 0;
  // what normalises rows: layer_norm, with weight and bias, or rms_norm, with a weight; layer_norm, rms_norm
  Norm norm = Norm::layer_norm;
  // data type of the norms' weights and biases, and of their gradients: fp32 or dtype; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // rows that a launch has, about: chooses the kernels of products, which are right for any number; 1 to 268435456
  std::int64_t typical_rows = 131072;
  // there is a backward direction, and forward gives what that takes
  bool training = true;
  // takes a bias, added to each row of the projection
  bool uvqk_bias = true;
  // backward normalises x again; forward gives normed_x where it does not
  bool recompute_normed_x = true;
  // backward projects again; forward gives uvqk where it does not
  bool recompute_uvqk = true;
  // applies silu to u, v, q and k; where not, to u alone
  bool silu_uvqk = false;
  // adds x to the result
  bool residual = true;
  // normalises the columns of each head of the attention output apart
  bool group_norm = false;
  // y begins with the columns of u
  bool concat_u = true;
  // the columns of the attention output come before those of the product
  bool concat_x = true;
  // launches take dropout_ratio, the part of elements of y that become 0, a seed and an offset
  bool dropout = false;
  // with dropout, launches take the seed as seed_tensor, one int64 in the device's memory, and not as a number
  bool seed_tensor = false;
  // backward computes y again; forward gives y where it does not
  bool recompute_y = true;
  // backward computes the attention output again; forward gives attn where it does not
  bool recompute_attn = false;
  // attention's backward, and the projection that is computed again for it, go through the heads in so many groups, for
  // less memory: a divisor of heads; 1 to 1024
  std::int64_t backward_head_groups = 1;
  // forward launches of few tiles get a kernel of their own, tuned by itself
  bool small_batches = false;

  std::string json() const {
    detail::InstanceText text("stu_stack");
    text.add("layers", layers);
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("precision", precision, Precision::tf32);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    text.add("causal", causal, true);
    text.add("num_targets", num_targets, false);
    text.add("target_group_size", target_group_size, 1);
    text.add("max_attn_len", max_attn_len, 0);
    text.add("min_full_attn_seq_len", min_full_attn_seq_len, 0);
    text.add("contextual_seq_len", contextual_seq_len, 0);
    text.add("num_contexts", num_contexts, false);
    text.add("sla_k1", sla_k1, 0);
    text.add("sla_k2", sla_k2, 0);
    text.add("attn_func", attn_func, 0);
    text.add("attn_func_heads", attn_func_heads, 0);
    text.add("full_mask", full_mask, false);
    text.add("mask", mask, "");
    text.add("score", score, Score::silu);
    text.add("operands", operands, "");
    text.add("num_softmax_heads", num_softmax_heads, 0);
    text.add("softmax_score", softmax_score, "");
    text.add("rab_heads", rab_heads, 0);
    text.add("attn_scale", attn_scale, AttnScale::none);
    text.add("drab", drab, true);
    text.add("dattn_scale", dattn_scale, true);
    text.add("width", width);
    text.add("norm", norm, Norm::layer_norm);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("typical_rows", typical_rows, 131072);
    text.add("training", training, true);
    text.add("uvqk_bias", uvqk_bias, true);
    text.add("recompute_normed_x", recompute_normed_x, true);
    text.add("recompute_uvqk", recompute_uvqk, true);
    text.add("silu_uvqk", silu_uvqk, false);
    text.add("residual", residual, true);
    text.add("group_norm", group_norm, false);
    text.add("concat_u", concat_u, true);
    text.add("concat_x", concat_x, true);
    text.add("dropout", dropout, false);
    text.add("seed_tensor", seed_tensor, false);
    text.add("recompute_y", recompute_y, true);
    text.add("recompute_attn", recompute_attn, false);
    text.add("backward_head_groups", backward_head_groups, 1);
    text.add("small_batches", small_batches, false);
    return text.str();
  }
};

// docs/parameters.md, "swish_layer_norm".
struct SwishLayerNorm {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // data type of weight and bias, and of their gradients: fp32 or that of rows; bf16, fp16, fp32
  DataType weight_dtype = DataType::fp32;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // takes a weight, a factor of each normalised column
  bool weight = true;
  // takes a bias, added to each normalised column
  bool bias = true;

  std::string json() const {
    detail::InstanceText text("swish_layer_norm");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("weight_dtype", weight_dtype, DataType::fp32);
    text.add("alignment", alignment, 16);
    text.add("weight", weight, true);
    text.add("bias", bias, true);
    return text.str();
  }
};

// docs/parameters.md, "take_last_rows".
struct TakeLastRows {
  // elements of a row; 1 to 16384; must be given
  std::int64_t width = 0;
  // data type of rows; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;
  // type of offsets and counts; int32, int64
  DataType offsets_dtype = DataType::int64;

  std::string json() const {
    detail::InstanceText text("take_last_rows");
    text.add("width", width);
    text.add("dtype", dtype, DataType::bf16);
    text.add("alignment", alignment, 16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    return text.str();
  }
};

// docs/parameters.md, "update_kv_cache".
struct UpdateKvCache {
  // number of attention heads H; 1 to 1024
  std::int64_t heads = 1;
  // head dimension of k; 1 to 256; must be given
  std::int64_t attn_dim = 0;
  // head dimension of v; 1 to 256; must be given
  std::int64_t hidden_dim = 0;
  // data type of k and v; bf16, fp16, fp32
  DataType dtype = DataType::bf16;
  // type of offsets; int32, int64
  DataType offsets_dtype = DataType::int64;
  // bytes that data pointers and strides are multiples of; 2, 4, 8, 16
  std::int64_t alignment = 16;

  std::string json() const {
    detail::InstanceText text("update_kv_cache");
    text.add("heads", heads, 1);
    text.add("attn_dim", attn_dim);
    text.add("hidden_dim", hidden_dim);
    text.add("dtype", dtype, DataType::bf16);
    text.add("offsets_dtype", offsets_dtype, DataType::int64);
    text.add("alignment", alignment, 16);
    return text.str();
  }
};

}  // namespace hstujit::api

#endif
