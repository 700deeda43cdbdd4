// Sums of a table's rows before they reach memory. A thread has some columns of all of them: those of rows that come
// again and again are in shared memory, or in registers, and are added to the table when another row takes their place.
#pragma once
#include "common/ptx/red.cuh"
#include "row/table_sums.cuh"

// Where the sums of all CTAs come together: the table where it is of fp32, else a region that is rounded in the end.
struct TableTotals {
  float* data;
  i64 stride;

  __device__ __forceinline__ float* row(i64 key) const { return data + key * stride; }
};

template <class Layout>
__device__ __forceinline__ void add_to_total(TableRowSums<Layout>& sums, float* row) {
  sums.for_each_piece(row, [](const float* piece, float* place) {
    if constexpr (TableRowSums<Layout>::kPiece == 4) {
      add_global(place, piece[0], piece[1], piece[2], piece[3]);
    } else {
      add_global(place, piece[0]);
    }
  });
}

// The last two rows that were found, in registers: rows of a sequence find the same one after the other, but for some
// that lie between.
template <class Layout>
class RecentSums {
 public:
  __device__ __forceinline__ RecentSums() {
    last_.clear();
    other_.clear();
  }

  // The sums of this row, which is the last one from now on.
  __device__ __forceinline__ TableRowSums<Layout>& of(u32 key, const TableTotals& totals) {
    if (key == key_) return last_;
    if (key != other_key_) {
      leave(other_key_, other_, totals);
      other_.clear();
      other_key_ = key;
    }
    const TableRowSums<Layout> before = last_;
    const u32 key_before = key_;
    last_ = other_;
    key_ = other_key_;
    other_ = before;
    other_key_ = key_before;
    return last_;
  }

  __device__ __forceinline__ void flush(const TableTotals& totals) {
    leave(key_, last_, totals);
    leave(other_key_, other_, totals);
  }

 private:
  static __device__ __forceinline__ void leave(u32 key, TableRowSums<Layout>& sums, const TableTotals& totals) {
    if (key != kNoKey) add_to_total(sums, totals.row(key));
  }

  TableRowSums<Layout> last_, other_;
  u32 key_ = kNoKey, other_key_ = kNoKey;
};

// As many rows as there are slots, in shared memory: a row has the slot of its number modulo the slots. Each thread reads
// and writes its own columns; a group of threads has a row in a slot for itself, and the warps of a group know it each.
template <class Layout, int kSlots, int kWidth>
class SlotSums {
 public:
  static constexpr int kGroupsOfWarp = 32 / Layout::kLanesPerRow;
  static constexpr int kTags = Layout::kThreads / 32 * kGroupsOfWarp * kSlots;
  static constexpr int kBytes = Layout::kRows * kSlots * kWidth * static_cast<int>(sizeof(float));

  __device__ __forceinline__ SlotSums(float* sums, u32* tags)
      : sums_(sums + Layout::row_of_cta() * kSlots * kWidth),
        tags_(tags + threadIdx.x / Layout::kLanesPerRow * kSlots) {
#pragma unroll 1
    for (int slot = 0; slot < kSlots; ++slot) {
      TableRowSums<Layout> zeros;
      zeros.clear();
      put(sums_ + slot * kWidth, zeros);
      if (threadIdx.x % Layout::kLanesPerRow == 0) tags_[slot] = kNoKey;
    }
    __syncwarp();
  }

  // All lanes of the warp call; kNoKey: there is nothing to add.
  template <class Add>
  __device__ __forceinline__ void add(u32 key, const TableTotals& totals, const Add& add) {
    const int slot = static_cast<int>(key % kSlots);
    const u32 tag = tags_[slot];
    __syncwarp();
    if (key != kNoKey) {
      float* const place = sums_ + slot * kWidth;
      TableRowSums<Layout> sums;
      get(place, sums);
      if (tag != key) {
        if (tag != kNoKey) add_to_total(sums, totals.row(tag));
        sums.clear();
        if (threadIdx.x % Layout::kLanesPerRow == 0) tags_[slot] = key;
      }
      add(sums);
      put(place, sums);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void flush(const TableTotals& totals) const {
#pragma unroll 1
    for (int slot = 0; slot < kSlots; ++slot) {
      if (tags_[slot] == kNoKey) continue;
      TableRowSums<Layout> sums;
      get(sums_ + slot * kWidth, sums);
      add_to_total(sums, totals.row(tags_[slot]));
    }
  }

 private:
  static __device__ __forceinline__ void get(const float* from, TableRowSums<Layout>& sums) {
    sums.for_each_piece(from, [](float* piece, const float* place) {
      if constexpr (TableRowSums<Layout>::kPiece == 4) {
        const float4 four = *reinterpret_cast<const float4*>(place);
        piece[0] = four.x;
        piece[1] = four.y;
        piece[2] = four.z;
        piece[3] = four.w;
      } else {
        piece[0] = place[0];
      }
    });
  }
  static __device__ __forceinline__ void put(float* to, TableRowSums<Layout>& sums) {
    sums.for_each_piece(to, [](const float* piece, float* place) {
      if constexpr (TableRowSums<Layout>::kPiece == 4) {
        *reinterpret_cast<float4*>(place) = make_float4(piece[0], piece[1], piece[2], piece[3]);
      } else {
        place[0] = piece[0];
      }
    });
  }

  float* sums_;
  u32* tags_;
};
