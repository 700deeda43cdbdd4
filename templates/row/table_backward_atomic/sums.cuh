// Sums of a table's rows before they reach memory. A thread has some columns of all of them: those of rows that come
// again and again are in registers or in shared memory, and are added to the table when another row takes their place.
#pragma once
#include "common/ptx/red.cuh"
#include "row/table_sums.cuh"

// Where the sums of all CTAs come together, in fp32.
struct TableTotals {
  float* data;
  i64 stride;

  __device__ __forceinline__ float* row(i64 key) const { return data + key * stride; }
};

// Where `wanted` says so. Without branches, here and below: sums that several ways lead to would be copied on each.
template <class Layout>
__device__ __forceinline__ void add_to_total(bool wanted, TableRowSums<Layout>& sums, const TableTotals& totals,
                                             u32 key) {
  sums.for_each_piece(totals.row(key), [&](const float* piece, float* place) {
    add_global_if(wanted, place, piece[0], piece[1], piece[2], piece[3]);
  });
}

// The row that was found last, in registers, and those before it, in shared memory: rows of a sequence find the same
// one after the other, but for some that lie between, and neighbouring sequences may find it again. A row has the slot
// of its number modulo the slots. Each thread reads and writes its own columns and keys alone.
template <class Layout, int kSlots, int kWidth>
class RecentSums {
 public:
  static constexpr int kFloats = Layout::kRows * kSlots * kWidth;  // of a CTA
  static constexpr int kKeys = kSlots * Layout::kThreads;

  __device__ __forceinline__ void init(float* sums, u32* keys) {
    sums_ = sums + Layout::row_of_cta() * kSlots * kWidth;
    keys_ = keys + threadIdx.x;
    last_.clear();
#pragma unroll 1
    for (int slot = 0; slot < kSlots; ++slot) key_of(slot) = kNoKey;
  }

  // Sums of kNoKey go nowhere in the end.
  __device__ __forceinline__ void add(u32 key, const TableRowSums<Layout>& summands, const TableTotals& totals) {
    if (key != key_) {
      put_aside(totals);
      last_.clear();
      key_ = key;
    }
    last_.add(summands);
  }

  __device__ __forceinline__ void flush(const TableTotals& totals) {
    add_to_total(key_ != kNoKey, last_, totals, key_);
#pragma unroll 1
    for (int slot = 0; slot < kSlots; ++slot) {
      TableRowSums<Layout> sums;
      sums.load_shared(sums_ + slot * kWidth);
      add_to_total(key_of(slot) != kNoKey, sums, totals, key_of(slot));
    }
  }

 private:
  __device__ __forceinline__ u32& key_of(int slot) const { return keys_[slot * Layout::kThreads]; }

  __device__ __forceinline__ void put_aside(const TableTotals& totals) {
    const int slot = static_cast<int>(key_ % kSlots);
    const u32 before = key_of(slot);
    TableRowSums<Layout> sums;
    sums.load_shared(sums_ + slot * kWidth);
    add_to_total(before != key_ && before != kNoKey, sums, totals, before);
    sums.choose(before == key_, sums);
    sums.add(last_);
    sums.store_shared(sums_ + slot * kWidth);
    key_of(slot) = key_;
  }

  float* sums_;
  u32* keys_;
  TableRowSums<Layout> last_;
  u32 key_ = kNoKey;
};

// Neighbouring rows of a table: those that the places of a tile find. A slot has the sums of its place, which is so
// many places behind that of the slot before as the CTA has groups.
template <class Layout, int kSlots>
class SlotSums {
 public:
  __device__ __forceinline__ SlotSums() { clear(); }

  // From now on the place of slot 0 finds the row `key`.
  __device__ __forceinline__ void at(u32 key, const TableTotals& totals) {
    if (key == key_) return;
    flush(totals);
    clear();
    key_ = key;
  }

  // Rows where a sequence begins or ends find others.
  __device__ __forceinline__ void add(int slot, u32 key, const TableTotals& totals, TableRowSums<Layout>& summands) {
    const bool expected = key == key_of(slot);
    add_to_total(!expected && key != kNoKey, summands, totals, key);
    if (expected) {
      sums_[slot].add(summands);
      used_ |= 1u << slot;
    }
  }

  __device__ __forceinline__ void flush(const TableTotals& totals) {
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) add_to_total((used_ >> slot & 1) != 0, sums_[slot], totals, key_of(slot));
  }

 private:
  __device__ __forceinline__ u32 key_of(int slot) const { return key_ + slot * Layout::kRows; }

  __device__ __forceinline__ void clear() {
    used_ = 0;
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) sums_[slot].clear();
  }

  TableRowSums<Layout> sums_[kSlots];
  u32 key_ = kNoKey, used_ = 0;
};
