// Rows on their way through shared memory, on Hopper: the copy engine fetches some ahead of the one that is computed,
// which takes no registers.
//
// The warps that share a row, or the warp that has several, are a group with buffers of its own, which its first warp
// fills in turn. A buffer is filled anew as soon as the group has taken its rows into registers, or, where a thread has
// too many elements for that, is done with them.
#pragma once
#include "common/ptx/barrier.cuh"
#include "common/ptx/bulk_copy.cuh"
#include "common/schedule/pipeline.cuh"
#include "common/schedule/release.cuh"
#include "row/elements.cuh"

// A thread's elements of a row that stays in shared memory.
template <class Layout, class Operands>
struct WaitingRow {
  static constexpr bool kInShared = true;

  template <class Elements>
  __device__ __forceinline__ void load(int input, int chunk, Elements& elements) const {
    elements.load_shared(first + input * input_bytes + Layout::columns_to(chunk) * Operands::Data::kBytes);
  }

  // All of them, into registers.
  __device__ __forceinline__ void load(HeldRow<Layout, Operands>& held) const {
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) {
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        if (Layout::has(chunk)) load(input, chunk, held.packs[input][chunk]);
      }
    }
  }

  const unsigned char* first;  // of the first input
  int input_bytes;             // from an input to the next one
};

template <class Layout, class Operands, bool kHoldRow>
struct RowOfRing {
  using type = HeldRow<Layout, Operands>;
};
template <class Layout, class Operands>
struct RowOfRing<Layout, Operands, false> {
  using type = WaitingRow<Layout, Operands>;
};

template <class Layout, class Operands, class Config>
class RowRing {
 public:
  using Row = typename RowOfRing<Layout, Operands, Config::kHoldRow != 0>::type;

  static constexpr int kGroupThreads = 32 * Layout::kWarpsPerRow;
  static constexpr int kGroupRows = kGroupThreads / Layout::kThreadsPerRow;
  static constexpr int kGroups = Layout::kThreads / kGroupThreads;  // of a CTA

  // Which group a thread is of: all lanes of a warp call, are of the same, and the compiler knows that.
  static __device__ __forceinline__ int group() { return warp() / Layout::kWarpsPerRow; }
  // Which of the group's rows a thread has.
  static __device__ __forceinline__ int row_of_group() {
    return static_cast<int>(threadIdx.x) % kGroupThreads / Layout::kThreadsPerRow;
  }

  // All threads of a CTA call. Each group takes kGroupRows rows from `first` on, then those that lie a step further, as
  // long as there are rows before `end`.
  template <class Params>
  __device__ __forceinline__ RowRing(const Params& params, i64 first, i64 end, i64 step)
      : end_(end), next_(first), step_(step), buffers_(buffers()[group()]) {
    Operands::row_inputs(params, data_, strides_);
    if (threadIdx.x % kGroupThreads == 0) {
      for (int i = 0; i < kBuffers; ++i) {
        mbarrier_init(shared_address(&buffers_.full[i]), 1);
        mbarrier_init(shared_address(&buffers_.empty[i]),
                      Layout::kWarpsPerRow * sm90::kArrivalsPerWarp<Config::kLanesArrive>);
      }
      fence_mbarrier_init();
    }
    __syncthreads();
    for (int i = 0; i < kBuffers; ++i) {
      if (fills()) fill(i);
    }
  }

  // The thread's next row, where there is one.
  __device__ __forceinline__ void take(bool exists, Row& row) {
    const int buffer = pipeline_.stage();
    WaitingRow<Layout, Operands> waiting;
    waiting.first = buffers_.rows[buffer][0][row_of_group()] + Layout::column(0) * Operands::Data::kBytes;
    waiting.input_bytes = kGroupRows * kRowBytes;
    if (exists) mbarrier_wait(shared_address(&buffers_.full[buffer]), pipeline_.phase());
    if constexpr (Row::kInShared) {
      row = waiting;
    } else {
      if (exists) waiting.load(row);
      advance();
    }
  }

  // When the thread is done with the row.
  __device__ __forceinline__ void give_back() {
    if constexpr (Row::kInShared) advance();
  }

 private:
  static constexpr int kBuffers = Config::kStages - 1;
  static constexpr bool kMeets = Layout::kWarpsPerRow == 1 && !Config::kLanesArrive;
  static constexpr int kRowBytes = Layout::kVectors * Layout::kVector * Operands::Data::kBytes;
  static_assert(kRowBytes % 16 == 0, "rows are copied in bulk");

  struct Buffers {
    unsigned char rows[kBuffers][Operands::kRowInputs][kGroupRows][kRowBytes];
    u64 full[kBuffers], empty[kBuffers];
  };

  static __device__ __forceinline__ Buffers* buffers() {
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    static_assert(sizeof(Buffers) * kGroups == Ring::kBytes,
                  "the host side and the template disagree on shared memory");
    return reinterpret_cast<Buffers*>(shared_bytes);
  }
  static __device__ __forceinline__ int warp() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0); }
  static __device__ __forceinline__ bool fills() { return warp() % Layout::kWarpsPerRow == 0; }

  // The group is done with a buffer.
  __device__ __forceinline__ void advance() {
    const int buffer = pipeline_.stage();
    // A warp that is a group by itself has read the buffer when its lanes meet.
    if constexpr (kMeets) {
      __syncwarp();
      fill(buffer);
    } else {
      sm90::release_warp<Config::kLanesArrive>(buffers_.empty[buffer]);
      if (fills()) {
        if (next_ < end_) mbarrier_wait(shared_address(&buffers_.empty[buffer]), pipeline_.phase());
        fill(buffer);
      }
    }
    pipeline_.advance();
  }

  // Asks for the group's next rows, as many as there are. All lanes of a warp call.
  __device__ __forceinline__ void fill(int buffer) {
    const i64 left = end_ - next_;
    if (left > 0) {
      const int rows = static_cast<int>(min(left, static_cast<i64>(kGroupRows)));
      const u32 full = shared_address(&buffers_.full[buffer]);
      mbarrier_arrive_expect_tx_by_warp(full, rows * kRowBytes * Operands::kRowInputs);
#pragma unroll
      for (int input = 0; input < Operands::kRowInputs; ++input) {
        const i64 stride = strides_[input] * Operands::Data::kBytes;
        const auto* const from = static_cast<const unsigned char*>(data_[input]) + next_ * stride;
        const u32 to = shared_address(buffers_.rows[buffer][input]);
        if (kGroupRows == 1 || stride == kRowBytes) {
          cp_async_bulk_by_warp(to, from, rows * kRowBytes, full);
        } else {
#pragma unroll 1
          for (int i = 0; i < rows; ++i) cp_async_bulk_by_warp(to + i * kRowBytes, from + i * stride, kRowBytes, full);
        }
      }
    }
    next_ += step_;
  }

  const i64 end_;
  i64 next_;  // of the group, to be asked for
  const i64 step_;
  Buffers& buffers_;
  const void* data_[Operands::kRowInputs];
  i64 strides_[Operands::kRowInputs];  // in elements
  sm90::PipelineState<kBuffers> pipeline_;
};
