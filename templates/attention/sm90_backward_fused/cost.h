// The cost model of the sm90_backward_fused skeleton.
#pragma once

#include <tuple>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/fields.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// Costs that make up the estimates, in microseconds on an H100; only their ratios count. Fitted by bench/fit_costs.cpp
// to 153 keys (docs/journal.md, entry 113).
struct FusedCosts {
  double q_tile = 1.03;                  // a Q tile of 64 rows: what does not grow with the head dimensions,
  double q_tile_columns = 1.446;         // and what does, for 256 columns of q and v
  double shared_multiprocessor = 1.226;  // of a Q tile, beside another CTA
  double tile = 0.307;                   // between two tiles, as for a Q tile,
  double tile_columns = 2.745;
  double one_buffer = 2.05;     // and what it takes more where k and v have one buffer
  double list_tail = 0.5;       // longest work tiles of a list, at whose end others wait,
  double unsorted_tail = 1.73;  // where the longest may come last
  double in_group = 0.607;      // of a list whose entries are groups: which sequence
  // Where the first columns are seen by all rows, of which the others see a part: their tile takes as long as many
  // others.
  double long_tile_tail = 0.917;          // in place of list_tail, where tiles wait for semaphores,
  double long_tile_tail_of_list = 0.247;  // and where CTAs take tiles as they are free
  double semaphore_link = 2.66;           // of the sum of one Q tile to which all tiles of a sequence add in turn
  double launches = 10.75;                // of clearing, kernel and, with atomics, conversion
  double bytes_per_microsecond = 2.32e6;  // of clearing and conversion
  double of_measured = 0.54;
  // Factors of tiles that CTAs take as they are free, and of tiles that wait for semaphores.
  double taken_tile = 0.786;
  double semaphore_tile = 1.11;
  double semaphore_last_tiles_first = 1.69;
  double semaphore_wait = 1.795;
  // Factor of per_sequence sequences: nobody waits, but a sum in global memory beside others in shared memory costs
  // more.
  double per_sequence_tile = 1.066;
  double gmem_accum = 1.026;

  // For bench/fit_costs.cpp.
  static constexpr auto fields() {
    return std::make_tuple(
        field("q_tile", &FusedCosts::q_tile, ""), field("q_tile_columns", &FusedCosts::q_tile_columns, ""),
        field("shared_multiprocessor", &FusedCosts::shared_multiprocessor, ""), field("tile", &FusedCosts::tile, ""),
        field("tile_columns", &FusedCosts::tile_columns, ""), field("one_buffer", &FusedCosts::one_buffer, ""),
        field("list_tail", &FusedCosts::list_tail, ""), field("unsorted_tail", &FusedCosts::unsorted_tail, ""),
        field("in_group", &FusedCosts::in_group, ""), field("long_tile_tail", &FusedCosts::long_tile_tail, ""),
        field("long_tile_tail_of_list", &FusedCosts::long_tile_tail_of_list, ""),
        field("semaphore_link", &FusedCosts::semaphore_link, ""), field("launches", &FusedCosts::launches, ""),
        field("bytes_per_microsecond", &FusedCosts::bytes_per_microsecond, ""),
        field("of_measured", &FusedCosts::of_measured, ""), field("taken_tile", &FusedCosts::taken_tile, ""),
        field("semaphore_tile", &FusedCosts::semaphore_tile, ""),
        field("semaphore_last_tiles_first", &FusedCosts::semaphore_last_tiles_first, ""),
        field("semaphore_wait", &FusedCosts::semaphore_wait, ""),
        field("per_sequence_tile", &FusedCosts::per_sequence_tile, ""),
        field("gmem_accum", &FusedCosts::gmem_accum, ""));
  }
};

// Estimated milliseconds of one launch, on the scale of sm90_backward_twopass's.
double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size, const FusedCosts& costs = {});

}  // namespace hstujit::sm90::backward
