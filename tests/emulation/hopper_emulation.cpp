#include "tests/emulation/hopper_emulation.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulation/halves.h"
#include "tests/emulation/parts.h"
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

// Items that a thread has begun.
template <class Item>
struct Begun {
  std::deque<std::vector<Item>> groups;
  std::vector<Item> uncommitted;

  void commit() {
    groups.push_back(std::move(uncommitted));
    uncommitted.clear();
  }
};
using Products = Begun<Pending>;
using Stores = Begun<Store>;
std::vector<std::unique_ptr<Products>> products;  // of each thread; null where it has none
std::map<unsigned, Stores> stores;

Products& own_products() {
  if (products.size() <= thread_number) products.resize(thread_number + 1);
  std::unique_ptr<Products>& own = products[thread_number];
  if (own == nullptr) own = std::make_unique<Products>();
  return *own;
}

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

// The swizzle moves 16 bytes together.
constexpr unsigned kTogether = 16, kHalvesTogether = kTogether / 2;

// Shared memory of the block whose thread runs, which descriptors have no rank of.
class OwnMemory {
 public:
  void read(void* to, unsigned offset, unsigned bytes) const {
    if (offset + bytes > bytes_ || offset % bytes != 0) fail("wgmma: wrong address");
    std::memcpy(to, memory_ + offset, bytes);
  }

 private:
  const unsigned char* const memory_ = block_memory;
  const size_t bytes_ = own_bytes();
};

struct Descriptor {
  explicit Descriptor(unsigned long long bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4) {
    if (bits >> 62 != 1) fail("wgmma: not the 128-byte swizzle");
  }
  // K contiguous: element k of row i.
  unsigned line(unsigned i, unsigned k) const { return swizzled(start + i / 8 * stride + i % 8 * 128 + k * 2); }
  // N contiguous.
  unsigned column(unsigned n, unsigned k) const {
    return swizzled(start + n / 64 * leading + k / 8 * stride + k % 8 * 128 + n % 64 * 2);
  }
  unsigned start, leading, stride;
};

constexpr unsigned kDepth = 16;

template <bool kBf16>
class Product {
 public:
  explicit Product(const Pending& pending) : pending_(pending), p_(pending.product), b_(p_.b) {}

  void evaluate() const {
    Pair a[2][kDepth], b[kDepth];
    if (p_.a_in_registers) {
      a_of_registers(a);
    } else {
      a_of_memory(a);
    }
    for (unsigned eight = 0; eight < static_cast<unsigned>(p_.n) / 8; ++eight) {
      columns(eight * 8 + 2 * (thread_index.x % 4), b);
      multiply(a, b, p_.accumulate, p_.sums + eight * 4);
    }
  }

 private:
  void a_of_registers(Pair (&a)[2][kDepth]) const {
    for (unsigned k = 0; k < kDepth; ++k) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned word = pending_.quad[k % 8 / 2][k / 8 * 2 + half];
        a[half][k] = twice(number_(static_cast<uint16_t>(word >> (k % 2 * 16))));
      }
    }
  }

  void a_of_memory(Pair (&a)[2][kDepth]) const {
    const Descriptor operand(p_.a);
    const unsigned thread = thread_index.x % 128, row = thread / 32 * 16 + thread % 32 / 4;
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned m = row + half * 8;
      for (unsigned k = 0; k < kDepth && p_.a_transposed; ++k) {
        uint16_t bits = 0;
        memory_.read(&bits, operand.column(m, k), sizeof(bits));
        a[half][k] = twice(number_(bits));
      }
      if (!p_.a_transposed) read_line(operand, m, [&](unsigned k, double value) { a[half][k] = twice(value); });
    }
  }

  // Columns n and n + 1 of b; n is even.
  void columns(unsigned n, Pair (&b)[kDepth]) const {
    for (unsigned k = 0; k < kDepth && p_.b_transposed; ++k) {
      uint16_t bits[2];
      memory_.read(bits, b_.column(n, k), sizeof(bits));
      b[k] = Pair{number_(bits[0]), number_(bits[1])};
    }
    for (unsigned i = 0; i < 2 && !p_.b_transposed; ++i) {
      read_line(b_, n + i, [&](unsigned k, double value) { b[k][i] = value; });
    }
  }

  template <class Put>
  void read_line(const Descriptor& operand, unsigned line, const Put& put) const {
    for (unsigned first = 0; first < kDepth; first += kHalvesTogether) {
      uint16_t bits[kHalvesTogether];
      memory_.read(bits, operand.line(line, first), kTogether);
      for (unsigned k = 0; k < kHalvesTogether; ++k) put(first + k, number_(bits[k]));
    }
  }

  const Pending& pending_;
  const WarpgroupProduct& p_;
  const Descriptor b_;
  const OwnMemory memory_;
  const Halves<kBf16> number_;
};

}  // namespace

void reset_hopper() {
  barriers.clear();
  products.clear();
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
  stores[thread_number].uncommitted.push_back({source, map_of(map), column, head, row});
}

void commit_stores() { stores[thread_number].commit(); }

void finish_stores(size_t pending) {
  auto& groups = stores[thread_number].groups;
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
  own_products().uncommitted.push_back(pending);
}

void commit_products() { own_products().commit(); }

void wait_products(size_t pending) {
  auto& mine = own_products().groups;
  // Products take their time: whoever may write to their operands, will.
  if (mine.size() > pending) pause_for(8);
  for (; mine.size() > pending; mine.pop_front()) {
    for (const Pending& pending : mine.front()) {
      if (pending.product.bf16) {
        Product<true>(pending).evaluate();
      } else {
        Product<false>(pending).evaluate();
      }
    }
  }
}

}  // namespace emulation
