// Configs of the sm90 skeletons of both directions, and their requirements on a device.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90 {

// A config of tiles with 64 unit for each consumer, of the grid schedule.
AttentionConfig tile_config(int64_t consumers, int64_t block_n, int64_t stages, int64_t blocks_per_sm);

// Why the device, the data, the tile or the schedule is nothing for a template; sizes are looked at elsewhere. `unit`
// says what a tile consists of: "rows". `schedules` are those it has, with spaces between them.
std::vector<Rejection> general_rejections(const HstuAttentionParams& params, const AttentionConfig& config,
                                          const DeviceSpec& device, std::string_view unit, std::string_view schedules);

// Why a config is nothing for the templates of the backward direction: what none of them has.
std::vector<Rejection> backward_rejections(const AttentionConfig& config);

// Why heads with softmax beside attn_func are nothing for a backward template.
std::vector<Rejection> interval_softmax_rejections(const HstuAttentionParams& params);

// Why a config with site warps is nothing for a template without them.
std::vector<Rejection> site_warp_rejections(const AttentionConfig& config);

// Why backward for Hopper is nothing for the operator's rows of q.
std::vector<Rejection> query_row_rejections(const AttentionSpec& spec);

// Why a config that packs sequences is nothing for a template that can: empty for one that does not.
std::vector<Rejection> packed_rejections(const AttentionSpec& spec, const AttentionConfig& config);

// Resident CTAs as cost models count them. More than three have not been timed: their estimates are those of three,
// which a search space lists first, so that tuning tries them and none is the first choice without times.
double timed_resident_ctas(const AttentionConfig& config);

// Why config.blocks_per_sm CTAs cannot be resident on one multiprocessor; empty when they can. `shared_bytes` are
// those of a CTA, `shared_bytes_resident` those of all of them with what the system reserves for each.
std::vector<Rejection> occupancy_limits(const AttentionConfig& config, int64_t threads, int64_t shared_bytes,
                                        int64_t shared_bytes_resident, const DeviceSpec& device);

// Why a CTA of `threads` cannot sort `sequences` of them, at most, in the pipeline's stages of k, whose rows have
// `qk_tiles` tiles of columns (attention/schedule/tile_schedule.cuh); empty where it can, or sorts none.
std::vector<Rejection> sort_limits(const AttentionConfig& config, int64_t threads, int64_t sequences, int64_t qk_tiles);

}  // namespace hstujit::sm90
