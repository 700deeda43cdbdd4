#include "tests/emulation/hopper_emulation.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "tests/emulation/halves.h"
#include "tests/emulation/tensor_map.h"

namespace emulation {

namespace {

struct Barrier {
  unsigned count = 0, arrived = 0, phase = 0;
  long long bytes = 0;  // announced and not there yet

  void complete_if_done() {
    if (arrived != count || bytes != 0) return;
    arrived = 0;
    ++phase;
  }
};

struct Store {
  unsigned source;
  EmulatedTensorMap map;
  int column, head, row;
};

// A product with what the other threads have of its operand in registers.
struct Pending {
  WarpgroupProduct product;
  std::array<std::array<unsigned, 4>, 4> quad;  // words of the four lanes of this thread's rows
};

std::map<unsigned, Barrier> barriers;
std::map<unsigned, std::deque<std::vector<Pending>>> groups;  // of a thread
std::map<unsigned, std::vector<Pending>> uncommitted;
std::map<unsigned, std::deque<std::vector<Store>>> store_groups;
std::map<unsigned, std::vector<Store>> stores;  // uncommitted

Barrier& barrier_of_cluster(unsigned address) {
  cluster_at(address, 8);
  const auto found = barriers.find(address);
  if (found == barriers.end()) fail("mbarrier: used before it is initialised");
  return found->second;
}

Barrier& barrier_at(unsigned address) {
  shared_at(address, 8);
  return barrier_of_cluster(address);
}

void arrive_at(Barrier& barrier, unsigned bytes) {
  if (barrier.arrived == barrier.count) fail("mbarrier: more arrivals than it counts");
  ++barrier.arrived;
  barrier.bytes += bytes;
  barrier.complete_if_done();
}

unsigned swizzled(unsigned address) { return address ^ ((address >> 7 & 7) << 4); }

EmulatedTensorMap map_of(const void* map) {
  EmulatedTensorMap copy;
  std::memcpy(&copy, map, sizeof(copy));
  return copy;
}

// Where an element of the box lies in global memory; null outside of the tensor.
unsigned char* global_element(const EmulatedTensorMap& map, int column, int head, int64_t row) {
  if (column >= map.columns || head >= map.heads || row < 0 || row >= map.rows) return nullptr;
  return static_cast<unsigned char*>(map.data) + 2 * (row * map.row_stride + head * map.head_stride + column);
}

template <class Element>
void for_box(const EmulatedTensorMap& map, unsigned shared, int column, int head, int row, const Element& element) {
  for (int line = 0; line < map.box_rows * map.box_heads; ++line) {
    const int h = head + line % map.box_heads;
    const int64_t r = static_cast<int64_t>(row) + line / map.box_heads;
    for (int c = 0; c < 64; ++c) {
      unsigned char* local = shared_at(swizzled(shared + static_cast<unsigned>(line * 128 + c * 2)), 2);
      element(local, global_element(map, column + c, h, r));
    }
  }
}

double element_at(bool bf16, unsigned address) {
  uint16_t bits = 0;
  std::memcpy(&bits, shared_at(address, 2), 2);
  return from_half(bf16, bits);
}

// The swizzle moves 16 bytes together.
constexpr unsigned kTogether = 16, kHalvesTogether = kTogether / 2;

struct Descriptor {
  explicit Descriptor(unsigned long long bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4) {
    if (bits >> 62 != 1) fail("wgmma: not the 128-byte swizzle");
  }
  // K contiguous: element k of row i.
  unsigned line(unsigned i, unsigned k) const { return own(start + i / 8 * stride + i % 8 * 128 + k * 2); }
  // N contiguous.
  unsigned column(unsigned n, unsigned k) const {
    return own(start + n / 64 * leading + k / 8 * stride + k % 8 * 128 + n % 64 * 2);
  }
  // Descriptors have no rank.
  static unsigned own(unsigned offset) { return swizzled(offset) | block_rank << kRankShift; }
  unsigned start, leading, stride;
};

// Two rows of a, or two columns of b.
using Lines = double[16][2];

// Columns n and n + 1 of b; n is even.
void read_columns(const WarpgroupProduct& p, const Descriptor& b, unsigned n, Lines& columns) {
  for (unsigned k = 0; k < 16 && p.b_transposed; ++k) {
    uint16_t bits[2];
    std::memcpy(bits, shared_at(b.column(n, k), sizeof(bits)), sizeof(bits));
    for (unsigned i = 0; i < 2; ++i) columns[k][i] = from_half(p.bf16, bits[i]);
  }
  for (unsigned i = 0; i < 2 && !p.b_transposed; ++i) {
    for (unsigned first = 0; first < 16; first += kHalvesTogether) {
      uint16_t bits[kHalvesTogether];
      std::memcpy(bits, shared_at(b.line(n + i, first), kTogether), kTogether);
      for (unsigned k = 0; k < kHalvesTogether; ++k) columns[first + k][i] = from_half(p.bf16, bits[k]);
    }
  }
}

void evaluate(const Pending& pending) {
  const WarpgroupProduct& p = pending.product;
  const unsigned thread = thread_index.x % 128, g = thread % 32 / 4, t = thread % 4, warp = thread / 32;
  Lines a;
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned k = 0; k < 16; ++k) {
      if (p.a_in_registers) {
        const unsigned word = pending.quad[k % 8 / 2][k / 8 * 2 + half];
        a[k][half] = from_half(p.bf16, static_cast<uint16_t>(word >> (k % 2 * 16)));
      } else {
        const unsigned m = warp * 16 + g + half * 8;
        const Descriptor operand(p.a);
        a[k][half] = element_at(p.bf16, p.a_transposed ? operand.column(m, k) : operand.line(m, k));
      }
    }
  }
  const Descriptor b(p.b);
  for (unsigned eight = 0; eight < static_cast<unsigned>(p.n) / 8; ++eight) {
    Lines columns;
    read_columns(p, b, eight * 8 + 2 * t, columns);
    // A column of b makes the sums of two rows, which are two apart in p.sums.
    float* const places = p.sums + eight * 4;
    double sums[4];
    for (unsigned i = 0; i < 4; ++i) sums[i] = p.accumulate ? places[i] : 0;
    for (unsigned k = 0; k < 16; ++k) {
      for (unsigned i = 0; i < 4; ++i) sums[i] += a[k][i / 2] * columns[k][i % 2];
    }
    for (unsigned i = 0; i < 4; ++i) places[i] = static_cast<float>(sums[i]);
  }
}

}  // namespace

void reset_hopper() {
  barriers.clear();
  groups.clear();
  uncommitted.clear();
  store_groups.clear();
  stores.clear();
}

void init_barrier(unsigned address, unsigned arrivals) {
  shared_at(address, 8);
  barriers[address] = Barrier{arrivals};
}

void arrive(unsigned address, unsigned bytes) { arrive_at(barrier_at(address), bytes); }

void arrive_at_cluster(unsigned address) { arrive_at(barrier_of_cluster(address), 0); }

void count_bytes(unsigned address, unsigned bytes) {
  Barrier& barrier = barrier_of_cluster(address);
  barrier.bytes -= bytes;
  barrier.complete_if_done();
}

void wait_barrier(unsigned address, unsigned phase) {
  const Barrier& barrier = barrier_at(address);
  wait_until([&barrier, phase] { return (barrier.phase & 1) != phase; });
}

void sync_named(int id, unsigned threads) { meet_named(id, threads); }

void arrive_named(int id, unsigned threads) { count_named(id, threads); }

void load_box(unsigned destination, const void* tensor_map, unsigned barrier, int column, int head, int row) {
  const EmulatedTensorMap map = map_of(tensor_map);
  if (destination % 128 != 0) fail("copy engine: wrong address");
  later([=] {
    for_box(map, destination, column, head, row, [](unsigned char* local, const unsigned char* global) {
      if (global == nullptr) {
        std::memset(local, 0, 2);
      } else {
        std::memcpy(local, global, 2);
      }
    });
    barrier_at(barrier).bytes -= map.box_rows * map.box_heads * 128;
    barrier_at(barrier).complete_if_done();
  });
}

void load_bytes(unsigned destination, const void* source, unsigned bytes, unsigned barrier) {
  if (destination % 16 != 0 || reinterpret_cast<uintptr_t>(source) % 16 != 0 || bytes % 16 != 0 || bytes == 0)
    fail("copy engine: wrong address or number of bytes");
  later([=] {
    for (unsigned i = 0; i < bytes; i += 16)
      std::memcpy(shared_at(destination + i, 16), static_cast<const unsigned char*>(source) + i, 16);
    barrier_at(barrier).bytes -= bytes;
    barrier_at(barrier).complete_if_done();
  });
}

void store_box(unsigned source, const void* map, int column, int head, int row) {
  stores[thread_number].push_back({source, map_of(map), column, head, row});
}

void commit_stores() {
  store_groups[thread_number].push_back(std::move(stores[thread_number]));
  stores[thread_number].clear();
}

void finish_stores(size_t pending) {
  auto& groups = store_groups[thread_number];
  for (; groups.size() > pending; groups.pop_front()) {
    for (const Store& store : groups.front()) {
      for_box(store.map, store.source, store.column, store.head, store.row,
              [](const unsigned char* local, unsigned char* global) {
                if (global != nullptr) std::memcpy(global, local, 2);
              });
    }
  }
}

void multiply_async(const WarpgroupProduct& product) {
  Pending pending{product, {}};
  if (product.a_in_registers) {
    struct Words {
      unsigned word[4];
    };
    Words mine;
    std::memcpy(mine.word, product.words, sizeof(mine.word));
    const Words* lanes = exchange(mine);
    for (unsigned lane = 0; lane < 4; ++lane) {
      const Words& words = lanes[thread_index.x % 32 / 4 * 4 + lane];
      for (unsigned i = 0; i < 4; ++i) pending.quad[lane][i] = words.word[i];
    }
  }
  uncommitted[thread_number].push_back(pending);
}

void commit_products() {
  groups[thread_number].push_back(std::move(uncommitted[thread_number]));
  uncommitted[thread_number].clear();
}

void wait_products(size_t pending) {
  auto& mine = groups[thread_number];
  // Products take their time: whoever may write to their operands, will.
  if (mine.size() > pending) {
    for (int turn = 0; turn < 8; ++turn) pause();
  }
  for (; mine.size() > pending; mine.pop_front()) {
    for (const Pending& product : mine.front()) evaluate(product);
  }
}

}  // namespace emulation
