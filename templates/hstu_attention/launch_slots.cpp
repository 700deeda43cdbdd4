#include "templates/hstu_attention/launch_slots.h"

#include <algorithm>
#include <string>

namespace hstujit {

namespace {

ParamSlot slot(const Signature& signature, std::string name, ParamSlot::Kind kind, std::string_view argument) {
  ParamSlot result;
  result.name = std::move(name);
  result.kind = kind;
  result.argument = find_argument(signature, argument);
  return result;
}

}  // namespace

std::vector<ParamSlot> hstu_attention_common_slots(const HstuAttentionSpec& spec) {
  using Kind = ParamSlot::Kind;
  const Signature signature = spec.signature(Direction::kForward);
  const auto& params = spec.params();
  const std::string data = params.dtype == DataType::kFp32 ? "float*" : "u16*";
  const std::string offset = params.offsets_dtype == DataType::kInt32 ? "const int*" : "const i64*";

  std::vector<ParamSlot> slots;
  slots.push_back(slot(signature, "out", Kind::kPointer, "out"));
  slots.back().type = data;
  slots.push_back(slot(signature, "out_row_stride", Kind::kStride, "out"));
  slots.push_back(slot(signature, "out_head_stride", Kind::kStride, "out"));
  slots.back().dimension = 1;
  slots.push_back(slot(signature, "seq_offsets", Kind::kPointer, "seq_offsets"));
  slots.back().type = offset;
  if (params.num_targets) {
    slots.push_back(slot(signature, "num_targets", Kind::kPointer, "num_targets"));
    slots.back().type = offset;
  }
  slots.push_back(slot(signature, "total_rows", Kind::kSize, "q"));
  slots.push_back(slot(signature, "batch", Kind::kSize, "seq_offsets"));
  slots.back().bias = -1;
  slots.push_back(slot(signature, "max_seq_len", Kind::kInt, "max_seq_len"));
  slots.push_back(slot(signature, "alpha", Kind::kFloat, "alpha"));
  slots.push_back(slot(signature, "inverse_scale", Kind::kInverse, "scaling_seqlen"));
  slots.back().fallback = find_argument(signature, "max_seq_len");
  return slots;
}

std::vector<GridFactor> hstu_attention_grid(const HstuAttentionSpec& spec, int64_t block_m) {
  const Signature signature = spec.signature(Direction::kForward);
  GridFactor tiles;
  tiles.source = GridFactor::Source::kScalar;
  tiles.argument = find_argument(signature, "max_seq_len");
  tiles.divisor = block_m;
  GridFactor heads;
  heads.constant = spec.params().heads;
  GridFactor batch;
  batch.source = GridFactor::Source::kSize;
  batch.argument = find_argument(signature, "seq_offsets");
  batch.bias = -1;
  return {tiles, heads, batch};
}

TileCounts count_tiles(const HstuAttentionParams& params, int64_t rows, int64_t block_m, int64_t block_n) {
  const bool windowed = params.max_attn_len > 0;
  const bool semi_local = params.sla_k1 > 0 || params.sla_k2 > 0;
  TileCounts counts;
  for (int64_t row = 0; row < rows; row += block_m) {
    const int64_t last = std::min(row + block_m, rows) - 1;
    int64_t begin = 0;
    const int64_t end = params.causal ? last + 1 : rows;
    int64_t extra = 0;
    if (windowed) begin = std::max<int64_t>(0, row - params.max_attn_len);
    if (semi_local) {
      begin = std::max<int64_t>(0, row - params.sla_k1);
      extra = std::min(begin, params.sla_k2);
    }
    counts.row_tiles += 1;
    counts.column_blocks +=
        static_cast<double>((end - begin + block_n - 1) / block_n + (extra + block_n - 1) / block_n);
  }
  return counts;
}

}  // namespace hstujit
