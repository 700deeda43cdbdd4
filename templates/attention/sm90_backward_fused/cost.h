// The cost model of the sm90_backward_fused skeleton.
#pragma once

#include <array>
#include <utility>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// What the estimates are made of, in microseconds on an H100; only their ratios count. Read off the cells
// of bench/grid.json (docs/journal.md, entries 29, 31 and 33); a fit to others is entry 61.
struct FusedCosts {
  double q_tile = 0.85;                // a Q tile of 64 rows: what does not grow with the head dimensions,
  double q_tile_columns = 1.43;        // and what does, for 256 columns of q and v
  double shared_multiprocessor = 1.3;  // of a Q tile, beside another CTA
  double tile = 0.3;                   // between two tiles, as for a Q tile,
  double tile_columns = 5.6;
  double one_buffer = 1.3;               // and what it takes more where k and v have one buffer
  double list_tail = 0.5;                // longest work tiles of a list, at whose end others wait,
  double unsorted_tail = 1;              // where the longest may come last
  double in_group = 0.7;                 // of a list whose entries are groups: which sequence
  double launches = 6;                   // of clearing, kernel and, with atomics, conversion
  double bytes_per_microsecond = 4.1e6;  // of clearing and conversion
  double of_measured = 0.62;
  // Of tiles that wait for semaphores.
  double semaphore_tile = 1.08;
  double semaphore_last_tiles_first = 1.12;
  double semaphore_wait = 1.1;
  // Of per_sequence sequences: nobody waits, but a sum in global memory beside others in shared memory costs
  // more.
  double per_sequence_tile = 0.95;
  double gmem_accum = 1.05;

  // Names and members, for bench/fit_costs.cpp.
  static constexpr auto fields() {
    return std::array{std::pair{"q_tile", &FusedCosts::q_tile},
                      std::pair{"q_tile_columns", &FusedCosts::q_tile_columns},
                      std::pair{"shared_multiprocessor", &FusedCosts::shared_multiprocessor},
                      std::pair{"tile", &FusedCosts::tile},
                      std::pair{"tile_columns", &FusedCosts::tile_columns},
                      std::pair{"one_buffer", &FusedCosts::one_buffer},
                      std::pair{"list_tail", &FusedCosts::list_tail},
                      std::pair{"unsorted_tail", &FusedCosts::unsorted_tail},
                      std::pair{"in_group", &FusedCosts::in_group},
                      std::pair{"launches", &FusedCosts::launches},
                      std::pair{"bytes_per_microsecond", &FusedCosts::bytes_per_microsecond},
                      std::pair{"of_measured", &FusedCosts::of_measured},
                      std::pair{"semaphore_tile", &FusedCosts::semaphore_tile},
                      std::pair{"semaphore_last_tiles_first", &FusedCosts::semaphore_last_tiles_first},
                      std::pair{"semaphore_wait", &FusedCosts::semaphore_wait},
                      std::pair{"per_sequence_tile", &FusedCosts::per_sequence_tile},
                      std::pair{"gmem_accum", &FusedCosts::gmem_accum}};
  }
};

// Estimated milliseconds of one launch, on the scale of sm90_backward_twopass's.
double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size, const FusedCosts& costs = {});

}  // namespace hstujit::sm90::backward
