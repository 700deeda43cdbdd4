#include "templates/attention/sm90/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/support/text.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90 {

double timed_resident_ctas(const AttentionConfig& config) {
  return static_cast<double>(std::min(config.blocks_per_sm, int64_t{3}));
}

AttentionConfig tile_config(int64_t consumers, int64_t block_n, int64_t stages, int64_t blocks_per_sm) {
  AttentionConfig config;
  config.block_m = 64 * consumers;
  config.block_n = block_n;
  config.stages = stages;
  config.consumers = consumers;
  config.blocks_per_sm = blocks_per_sm;
  return config;
}

std::vector<Rejection> general_rejections(const HstuAttentionParams& params, const AttentionConfig& config,
                                          const DeviceSpec& device, std::string_view unit, std::string_view schedules) {
  std::vector<Rejection> reasons;
  if (device.arch != "sm_90a") {
    reasons.push_back({"arch", fmt::format("needs sm_90a (wgmma, TMA), the device is {}", device.arch)});
  }
  if (params.dtype == DataType::kFp32) {
    reasons.push_back({"dtype", "dtype fp32 is not multiplied here: wgmma cannot transpose 32-bit operands"});
  }
  if (params.alignment < 16) {
    reasons.push_back(
        {"alignment", fmt::format("alignment {} is below the 16 bytes that tensor maps need", params.alignment)});
  }
  if (config.consumers < 1 || config.consumers > 3 || config.block_m != 64 * config.consumers) {
    reasons.push_back({"block_m", fmt::format("block_m {} with {}; allowed: 64 {} for each of 1 to 3 consumers",
                                              config.block_m, counted(config.consumers, "consumer"), unit)});
  }
  if (config.block_n < 16 || config.block_n > 256 || config.block_n % 16 != 0) {
    reasons.push_back({"block_n", fmt::format("block_n {}; allowed: a multiple of 16 from 16 to 256", config.block_n)});
  }
  const std::vector<std::string> allowed = split(schedules, ' ');
  if (std::find(allowed.begin(), allowed.end(), config.schedule) == allowed.end()) {
    reasons.push_back({"schedule", fmt::format("schedule {}; allowed: {}", config.schedule, fmt::join(allowed, ", "))});
  }
  return reasons;
}

std::vector<Rejection> backward_rejections(const AttentionConfig& config) {
  std::vector<Rejection> reasons;
  if (config.stages < 2) {
    reasons.push_back(
        {"stages",
         fmt::format("stages {}; allowed: at least 2, a tile is waited for while one is multiplied", config.stages)});
  }
  if (config.ping_pong) {
    reasons.push_back({"ping_pong", "ping_pong true; allowed: false, ping-pong is not part of this template"});
  }
  if (config.split_kv) {
    reasons.push_back({"split_kv", "split_kv true; allowed: false, this template's CTAs form no clusters"});
  }
  if (config.head_cluster > 1) {
    reasons.push_back({"head_cluster", fmt::format("head_cluster {}; allowed: 1, this template's CTAs form no clusters",
                                                   config.head_cluster)});
  }
  return reasons;
}

std::vector<Rejection> site_warp_rejections(const AttentionConfig& config) {
  if (config.site_warps == 0) return {};
  return {{"site_warps", fmt::format("site_warps {}; allowed: 0, this template stages no dS that others could read",
                                     config.site_warps)}};
}

std::vector<Rejection> interval_softmax_rejections(const HstuAttentionParams& params) {
  if (!params.has_intervals() || !params.has_softmax()) return {};
  return {{"attn_func", fmt::format("attn_func {} with num_softmax_heads {}; allowed: one of them, since both have a "
                                    "kernel in front of this template's",
                                    params.attn_func, params.num_softmax_heads)}};
}

std::vector<Rejection> query_row_rejections(const AttentionSpec& spec) {
  if (spec.query_rows() == QueryRows::kAll) return {};
  return {{"query_rows",
           fmt::format("{} has the last rows of each sequence in q; allowed: all rows, whose tiles begin as those of k",
                       spec.op())}};
}

std::vector<Rejection> packed_rejections(const AttentionSpec& spec, const AttentionConfig& config) {
  if (!config.pack_sequences) return {};
  if (spec.params().has_softmax()) {
    return {{"pack_sequences", "pack_sequences true; allowed: false, rows of packed tiles have no softmax"}};
  }
  if (spec.params().attn_dropout) {
    return {
        {"pack_sequences", "pack_sequences true; allowed: false, dropout draws for blocks of 16 rows of one sequence"}};
  }
  if (spec.params().has_bias()) {
    return {
        {"pack_sequences",
         fmt::format("pack_sequences true; allowed: false, a bias ({}) has rows and columns of one sequence at a time",
                     spec.operand(OperandUse::kBias)->name)}};
  }
  if (const Operand* const read = find_read_of_sequence(spec.operands())) {
    return {
        {"pack_sequences",
         fmt::format("pack_sequences true; allowed: false, the score reads {} of one sequence at a time", read->name)}};
  }
  if (spec.mask_reads()) {
    return {
        {"pack_sequences", "pack_sequences true; allowed: false, the mask reads operands of one sequence at a time"}};
  }
  if (spec.params().has_intervals()) {
    return {{"pack_sequences", "pack_sequences true; allowed: false, attn_func has rows of one sequence at a time"}};
  }
  if (spec.query_rows() != QueryRows::kAll) {
    return {{"pack_sequences",
             fmt::format("pack_sequences true; allowed: false, {} has few rows of each sequence in q", spec.op())}};
  }
  if (config.consumers != 1 || config.split_kv) {
    return {
        {"pack_sequences",
         fmt::format("pack_sequences with {} and split_kv {}; allowed: with 1 consumer, whose 64 rows are looked up, "
                     "and split_kv false",
                     counted(config.consumers, "consumer"), config.split_kv)}};
  }
  return {};
}

std::vector<Rejection> occupancy_limits(const AttentionConfig& config, int64_t threads, int64_t shared_bytes,
                                        int64_t shared_bytes_resident, const DeviceSpec& device) {
  std::vector<Rejection> reasons;
  const int64_t shared_total = device.multiprocessor_shared_memory();
  if (shared_bytes_resident > shared_total) {
    reasons.push_back(
        {"shared_memory",
         fmt::format("{} of {} bytes, {} more reserved for each, exceed the {} bytes of a multiprocessor",
                     counted(config.blocks_per_sm, "CTA"), shared_bytes, kReservedSharedMemory, shared_total)});
  }
  if (threads * config.blocks_per_sm > device.max_threads) {
    reasons.push_back({"threads", fmt::format("{} of {} threads exceed {}", counted(config.blocks_per_sm, "CTA"),
                                              threads, device.max_threads)});
  }
  return reasons;
}

std::vector<Rejection> sort_limits(const AttentionConfig& config, int64_t threads, int64_t sequences,
                                   int64_t qk_tiles) {
  const int64_t key_bytes = config.stages * config.block_n * qk_tiles * kSwizzleBytes;
  constexpr int64_t kSortKeys = 64, kCounterBytes = 2;  // a byte for each sequence lies behind the counters
  const int64_t needed = threads / 32 * kSortKeys * kCounterBytes + sequences;
  if (sequences <= 1 || key_bytes >= needed) return {};
  return {{"shared_memory", fmt::format("the stages of k have {} bytes, and to sort {} sequences takes {}", key_bytes,
                                        sequences, needed)}};
}

}  // namespace hstujit::sm90
