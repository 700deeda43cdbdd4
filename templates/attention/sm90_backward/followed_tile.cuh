// Attention backward on Hopper, dS computed once: what the producer tells a warp that follows all Q tiles.
#pragma once
#include "common/schedule/release.cuh"
#include "common/types.cuh"

namespace sm90::backward {

// A Q tile of one head.
struct FollowedTile {
  int row;   // the first one, in the tensors
  int rows;  // of the sequence from there on, which may exceed the tile; 0: there are no further tiles
  int head;
#ifdef kBiasInShared
  int sequence;       // its number in the batch
  int row0, column0;  // first of the Q tile, and of the KV tile, within the sequence
#endif
};

// Arrivals of the warp for a Q tile: for what it copies itself, and of its lanes' asynchronous copies.
template <class Config>
#ifdef kBiasInShared
constexpr int kFollowerArrivals = kArrivalsPerWarp<Config::kLanesArrive> + 32;
#else
constexpr int kFollowerArrivals = kArrivalsPerWarp<Config::kLanesArrive>;
#endif

}  // namespace sm90::backward
