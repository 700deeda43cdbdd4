#include "compiler/spec/aliases.h"

#include <algorithm>
#include <string>

#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

struct Alias {
  std::string_view meant;
  std::string_view written;  // separated by spaces, in lower case
};

// A name is suggested only where it is allowed, so that one table serves every object and operator.
constexpr Alias kParameterNames[] = {
    // The document.
    {"device", "arch gpu target compute_capability"},
    {"tuning", "autotune autotuning tune"},
    {"ops", "operators instances kernels layers modules"},
    // tuning
    {"budget_s", "budget budget_seconds seconds time timeout max_time"},
    {"length_mode", "mode bucket bucketing buckets length_bucket"},
    {"deterministic", "use_deterministic_algorithms reproducible"},
    // lengths
    {"distribution", "type kind"},
    {"low", "min minimum"},
    {"high", "max maximum"},
    {"batch", "batch_size bs b num_sequences"},
    {"seed", "random_seed manual_seed"},
    {"file", "path filename"},
    // Entries of ops, whatever the operator is.
    {"name", "id label"},
    {"op", "operator kernel function kind type"},
    {"directions", "passes requires_grad backward forward training is_inference"},
    {"training", "is_inference"},
    {"max_seq_len",
     "seq_len seqlen max_seqlen max_seqlens seq_length max_seq_length sequence_length max_sequence_length max_len "
     "max_lengths max_lens "
     "max_length n_ctx block_size max_position_embeddings max_seqlen_q max_seqlen_k seqlen_max"},
    {"lengths",
     "seq_lens seqlens seq_lengths sequence_lengths seq_offsets cu_seqlens cu_seqlens_q cu_seqlens_k x_offsets"},
    {"alpha", "sm_scale softmax_scale scale scaling qk_scale attention_scale attn_alpha"},
    {"small_batches", "small_batch"},
    {"delta_len", "delta_size delta_q_len q_len max_delta_len max_q_len num_new_rows"},
    // Parameters of the attention operators.
    {"heads",
     "num_heads num_head n_heads nheads nhead n_head h num_attention_heads attention_heads num_q_heads num_kv_heads "
     "num_key_value_heads num_groups groups"},
    {"attn_dim", "head_dim headdim head_size d_head dim_head d_k hdim"},
    {"hidden_dim", "head_dim headdim head_size d_head dim_head hdim"},
    {"attn_dim", "attention_dim attn_head_dim qk_dim dqk d_qk d_q dim_qk head_dim_qk qk_head_dim block_d_q"},
    {"hidden_dim", "linear_dim linear_hidden_dim v_dim dv d_v dim_v head_dim_v v_head_dim value_dim block_d_v"},
    {"dtype", "data_type datatype torch_dtype"},
    {"precision", "allow_tf32 use_tf32 input_precision matmul_precision float32_matmul_precision tf32"},
    {"offsets_dtype", "offset_dtype index_dtype indices_dtype index_type"},
    {"alignment", "align alignment_bytes byte_alignment"},
    {"causal", "is_causal causal_mask attn_mask attention_mask"},
    {"num_targets", "targets target_aware has_targets has_num_targets has_multiple_targets num_candidates"},
    {"target_group_size", "targets_group_size target_group group_size"},
    {"max_attn_len",
     "window window_size sliding_window local_window max_attention_len attn_window window_left "
     "window_size_left window_size_right"},
    {"min_full_attn_seq_len", "full_attn_size min_full_attention_seq_len full_attn_len"},
    {"contextual_seq_len",
     "contextual num_contextual max_num_contextuals contextual_len context_len max_contextual_seq_len max_context_len "
     "prefix_len num_prefix"},
    {"num_contexts", "contexts num_contextuals has_contexts has_num_contexts"},
    {"attn_func", "func attn_funcs has_attn_func n_func num_func nfunc arbitrary_nfunc"},
    {"full_mask", "no_mask bidirectional is_bidirectional"},
    {"score", "activation act act_fn score_fn score_mod activation_fn nonlinearity"},
    {"num_softmax_heads", "softmax_heads num_heads_softmax"},
    {"softmax_score", "softmax_score_mod softmax_activation"},
    {"rab_heads",
     "bias_heads num_bias_heads rab has_rab bias attn_bias relative_bias relative_attention_bias rel_attn_bias "
     "attention_bias has_attn_bias enable_relative_attention_bias"},
    {"attn_scale", "has_attn_scale attention_scales"},
    {"drab", "has_drab dbias"},
    // Of a kernel's config.
    {"stages", "num_stages"},
    {"warps", "num_warps"},
    // Parameters of products.
    {"k", "in_features input_dim hidden_size"},
    {"n", "out_features output_dim units"},
    {"input", "bias has_bias beta"},
    {"transpose_mat2", "trans_b transpose_b transb transpose_weight transposed"},
    {"typical_rows", "num_rows m batch_size"},
    // Parameters of the operators over rows.
    {"rows", "num_rows m l batch_size total_rows"},
    {"width",
     "hidden_size normalized_shape dim d embedding_dim embed_dim d_model model_dim input_dim num_features hidden_dim "
     "columns n"},
    {"weight", "elementwise_affine affine has_weight learnable gamma"},
    {"bias", "has_bias beta"},
    {"norm", "norm_type normalization"},
    {"group_norm", "use_group_norm groupnorm"},
    {"uvqk_bias", "bias has_bias"},
    {"concat_u", "concat_ux"},
    {"concat_x", "concat_ux"},
    {"dropout",
     "p dropout_ratio dropout_rate dropout_pr dropout_p output_dropout_ratio linear_dropout_rate "
     "training has_dropout"},
    {"mul_u_activation", "u_activation gate_activation mul_u_activation_type"},
    {"recompute_normed_x", "recompute_normed_x_in_backward"},
    {"recompute_uvqk", "recompute_uvqk_in_backward"},
    {"recompute_y", "recompute_y_in_backward"},
    {"layers", "num_layers num_hidden_layers n_layers n_layer depth num_blocks"},
    // Of the sides of jagged sequences.
    {"prefix", "n_prefix_from_right n_prefix_to_right contextual_seq_len"},
    {"jagged_queries", "jagged_q is_delta_q jagged_delta"},
    // Arguments of launches.
    {"max_seq_len", "n"},
    {"seq_offsets", "cu_seqlens cu_seqlens_q cu_seqlens_k seq_lens seqlens seq_lengths lengths x_offsets"},
    {"rab", "bias attn_bias relative_bias"},
    {"eps", "epsilon norm_eps norm_epsilon layer_norm_eps layer_norm_epsilon"},
    // Backends, directions and commands of the Python package.
    {"host", "cpu"},
    {"cuda", "gpu"},
    {"forward", "fwd"},
    {"backward", "bwd"},
    {"list", "ls"},
    {"export", "export_"},
    // Layers of the Python package.
    {"attention_dim", "attn_dim qk_dim head_dim"},
    {"num_heads", "nhead n_heads"},
    {"embedding_dim", "width d_model embed_dim"},
    {"output_dropout_ratio", "dropout p"},
    {"attn_alpha", "scale scaling sm_scale softmax_scale"},
    {"use_group_norm", "groupnorm"},
    // Functions of the Python package.
    {"hstu_attention", "hstu_mha hstu_mha_cuda mha"},
    {"hstu_mha", "attention hstu_attention hstu_mha_cuda mha"},
    {"delta_hstu_attention", "delta_attention delta_hstu_mha"},
    {"delta_hstu_mha", "delta_attention delta_hstu_attention"},
    {"concat_2d_jagged", "hstu_concat_l2_embeddings"},
    {"split_2d_jagged", "hstu_split_l2_embeddings"},
    {"STULayer", "stu_layer cached_stu_layer"},
    {"STUStack", "stu_stack"},
};

// Names of what stands elsewhere: one level deeper in an object that is allowed, or in the document, where an entry of
// ops has `object`.
struct NestedAlias {
  std::string_view object;
  std::string_view meant;
  std::string_view written;
};
constexpr NestedAlias kNested[] = {
    {"lengths", "lengths.batch", "batch batch_size bs num_sequences"},
    {"lengths", "lengths.distribution", "distribution"},
    {"tuning", "tuning.budget_s", "budget budget_s budget_seconds"},
    {"tuning", "tuning.length_mode", "length_mode bucketing"},
    {"tuning", "tuning.deterministic", "deterministic use_deterministic_algorithms reproducible"},
    {"tuning", "tuning.exhaustive", "exhaustive"},
    {"directions", "tuning.deterministic", "deterministic use_deterministic_algorithms reproducible"},
    {"defaults", "defaults.dtype", "dtype data_type torch_dtype"},
    {"defaults", "defaults.heads", "heads num_heads"},
    {"defaults", "defaults.attn_dim", "attn_dim head_dim attention_dim"},
    {"defaults", "defaults.hidden_dim", "hidden_dim linear_dim"},
    {"defaults", "defaults.max_seq_len", "max_seq_len seq_len max_seqlen"},
};

struct ValueAlias {
  std::string_view field;
  std::string_view meant;
  std::string_view written;
};

// `dtype` stands for every field whose value is a data type: their names end in it.
constexpr ValueAlias kValues[] = {
    {"dtype", "bf16", "bf bfloat16 torch.bfloat16 tl.bfloat16 jnp.bfloat16 bfloat nv_bfloat16 __nv_bfloat16"},
    {"dtype", "fp16", "float16 torch.float16 tl.float16 np.float16 jnp.float16 half torch.half f16 __half"},
    {"dtype", "fp32", "float32 torch.float32 tl.float32 np.float32 jnp.float32 float torch.float f32 single tf32"},
    {"dtype", "int32", "torch.int32 tl.int32 np.int32 int torch.int i32 int32_t"},
    {"dtype", "int64", "torch.int64 tl.int64 np.int64 long torch.long i64 int64_t"},
    {"precision", "tf32", "tf high tensorfloat32 tensorfloat-32"},
    {"precision", "ieee", "highest fp32 float32 strict exact"},
    {"norm", "layer_norm", "layer layernorm ln torch.nn.layernorm"},
    {"norm", "rms_norm", "rms rmsnorm torch.nn.rmsnorm"},
    {"score", "silu", "swish"},
    {"mul_u_activation", "silu", "swish"},
    {"score", "relu2", "squared_relu relu_squared relu^2"},
    {"score", "identity", "none linear"},
    {"directions", "forward", "fwd fprop inference"},
    {"directions", "backward", "bwd bprop grad dgrad"},
    {"op", "addmm", "linear nn.linear torch.nn.linear mm matmul gemm torch.addmm"},
    {"op", "complete_cumsum", "asynchronous_complete_cumsum fbgemm.asynchronous_complete_cumsum"},
    {"op", "hstu_preprocess_and_attention", "preprocess_and_attention"},
    {"op", "hstu_compute_uqvk", "compute_uqvk"},
    {"op", "stu_layer", "stu stulayer hstu_layer layer"},
    {"op", "hstu_attention", "hstu hstu_attn hstu_mha attention hstu_varlen hstu_attn_varlen_func triton_hstu_mha"},
    {"op", "delta_hstu_attention",
     "delta_hstu delta_hstu_attn delta_hstu_mha delta_attention hstu_delta_attention cached_hstu_mha "
     "triton_cached_hstu_mha"},
    {"length_mode", "pow2", "pow power_of_2 power_of_two next_power_of_2 next_power_of_two"},
    {"length_mode", "exact", "none off"},
    {"distribution", "uniform", "random rand"},
    {"device", "sm_80", "ampere compute_80 sm80 80 8.0"},
    {"device", "sm_86", "compute_86 sm86 86 8.6"},
    {"device", "sm_89", "ada compute_89 sm89 89 8.9"},
    {"device", "sm_90a", "hopper compute_90 compute_90a sm_90 sm90 sm90a 90 90a 9.0"},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool lists(std::string_view words, const std::string& word) {
  const auto parts = split(words, ' ');
  return std::find(parts.begin(), parts.end(), word) != parts.end();
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string digits_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c >= '0' && c <= '9') digits += c;
  }
  return digits;
}

// Arguments of the launches of operators that have a field, by the names that others have for them, too.
constexpr Alias kLaunchArguments[] = {
    {"weight_dtype", "eps epsilon norm_eps norm_epsilon layer_norm_eps layer_norm_epsilon"},
    {"dropout", "seed offset dropout_ratio dropout_p p"},
    {"attn_dim", "scaling_seqlen q k v delta_q"},
    {"heads", "attn u"},
    {"width",
     "x u norm_weight norm_bias uvqk_weight output_weight values values_left values_right prefix_x l2_x "
     "position_embeddings_weight timestamp_embeddings_weight seq_embeddings timestamps"},
    {"n", "mat1 mat2 jagged dense"},
    {"dense_left",
     "max_len_left max_len_right total_len_left total_len_right offsets_left offsets_right max_prefix_len max_l2_len "
     "prefix_offsets l2_offsets"},
    {"interleave_targets", "max_contextual_seq_len"},
    {"time_bucket_fn", "time_bucket_increments"},
};

// What kernels of Triton and CUTLASS are configured with.
constexpr std::string_view kTunables =
    "num_warps num_stages num_ctas num_consumer_groups num_buffers_warp_spec maxnreg waves_per_eu warps stages block_m "
    "block_n block_k block_d kblockm kblockn kblockk cluster_size cluster_shape tile_shape num_splits split_k";

}  // namespace

bool is_tunable(std::string_view written) { return lists(kTunables, lower_case(written)); }

bool is_launch_argument(std::string_view written, const std::vector<std::string_view>& allowed) {
  const std::string word = lower_case(written);
  return std::any_of(std::begin(kLaunchArguments), std::end(kLaunchArguments), [&](const Alias& arguments) {
    return contains(allowed, arguments.meant) && lists(arguments.written, word);
  });
}

std::vector<std::string_view> meant_names(std::string_view written, const std::vector<std::string_view>& allowed) {
  const std::string word = lower_case(written);
  // Others have a name for a field that is one of another operator's here.
  if (const auto same = std::find(allowed.begin(), allowed.end(), word); same != allowed.end()) return {*same};
  // Of a batch "lengths" say all, where there are any: the sizes of it that others have are no sizes of a product.
  for (const NestedAlias& alias : kNested) {
    if (lists(alias.written, word) && contains(allowed, alias.object)) return {alias.meant};
  }
  std::vector<std::string_view> meant;
  for (const Alias& alias : kParameterNames) {
    if (lists(alias.written, word) && contains(allowed, alias.meant)) meant.push_back(alias.meant);
  }
  if (meant.empty()) {
    if (const std::string_view near = closest(written, allowed); !near.empty()) meant.push_back(near);
  }
  return meant;
}

std::string_view meant_value(std::string_view field, std::string_view written,
                             const std::vector<std::string_view>& allowed) {
  const std::string word = lower_case(written);
  const std::string_view kind = field.ends_with("dtype") ? "dtype" : field;
  for (const ValueAlias& alias : kValues) {
    if (alias.field == kind && lists(alias.written, word) && contains(allowed, alias.meant)) return alias.meant;
  }
  // fp8 is no misspelt fp16: letters are mistaken, numbers are meant. One may be cut off, as in sm_9a.
  const std::string digits = digits_of(written);
  std::vector<std::string_view> alike, begun;
  for (const std::string_view value : allowed) {
    const std::string others = digits_of(value);
    if (others == digits) {
      alike.push_back(value);
    } else if (!digits.empty() && others.starts_with(digits)) {
      begun.push_back(value);
    }
  }
  const std::string_view near = closest(written, alike);
  if (!near.empty()) return near;
  // The number of an operator, as in concat_2d_jagged, is not what tells it from others.
  return closest(written, field == "op" && digits.empty() ? allowed : begun);
}

}  // namespace hstujit
