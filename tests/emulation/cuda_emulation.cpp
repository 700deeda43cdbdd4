#include "tests/emulation/cuda_emulation.h"

#include <ucontext.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "compiler/spec/rounding.h"

constexpr size_t kMostShared = 256 * 1024;
alignas(1024) unsigned char shared_bytes[kMostShared];

namespace emulation {

EmulatedIndex thread_index, block_index, grid_dimension;

namespace {

constexpr size_t kStack = 512 * 1024;
constexpr unsigned kLanes = 32;

struct Copy {
  unsigned destination;
  const void* source;
  size_t bytes;
  bool valid;
};

// Where threads meet: the last one to come lets all of them go on.
struct Meeting {
  unsigned arrived = 0, generation = 0;
};

struct Warp {
  Meeting meeting;
  std::vector<unsigned char> given, taken;
};

struct Thread {
  ucontext_t context;
  std::unique_ptr<unsigned char[]> stack;
  bool done = false;
  const Meeting* waits_at = nullptr;
  unsigned waits_for = 0;  // a generation of it
  std::function<bool()> ready;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> uncommitted;
};

struct BlockState {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Meeting all;
  std::map<int, Meeting> named;
  std::vector<std::function<void()>> events;
  size_t shared_bytes = 0;
  unsigned running = 0, alive = 0;
  ucontext_t scheduler;
  const std::function<void()>* kernel = nullptr;
  std::string failure;
};

BlockState state;

Thread& self() { return state.threads[state.running]; }

void yield() { swapcontext(&self().context, &state.scheduler); }

void meet(Meeting& meeting, unsigned members) {
  if (++meeting.arrived == members) {
    meeting.arrived = 0;
    ++meeting.generation;
    return;
  }
  self().waits_at = &meeting;
  self().waits_for = meeting.generation + 1;
  yield();
  self().waits_at = nullptr;
}

void thread_main() {
  (*state.kernel)();
  self().done = true;
  --state.alive;
  // Threads that have left take no part in barriers.
  if (state.all.arrived > 0 && state.all.arrived == state.alive) {
    state.all.arrived = 0;
    ++state.all.generation;
  }
  while (true) yield();
}

void start_block(unsigned threads) {
  state.threads.resize(threads);
  state.warps.assign((threads + kLanes - 1) / kLanes, {});
  state.all = {};
  state.named.clear();
  state.events.clear();
  reset_hopper();
  state.alive = threads;
  state.failure.clear();
  std::memset(shared_bytes, 0xff, kMostShared);  // NaN in every type
  for (Thread& thread : state.threads) {
    if (thread.stack == nullptr) thread.stack = std::make_unique<unsigned char[]>(kStack);
    thread.done = false;
    thread.waits_at = nullptr;
    thread.ready = nullptr;
    thread.groups.clear();
    thread.uncommitted.clear();
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, thread_main, 0);
  }
}

void run_block(std::mt19937& random) {
  std::vector<unsigned> order(state.threads.size());
  for (unsigned i = 0; i < order.size(); ++i) order[i] = i;
  while (state.alive > 0) {
    std::shuffle(order.begin(), order.end(), random);
    bool progress = false;
    for (const unsigned i : order) {
      const Thread& thread = state.threads[i];
      const bool waits =
          thread.waits_at != nullptr && static_cast<int>(thread.waits_at->generation - thread.waits_for) < 0;
      if (thread.done || waits || (thread.ready && !thread.ready())) continue;
      state.running = i;
      thread_index.x = i;
      swapcontext(&state.scheduler, &state.threads[i].context);
      progress = true;
      if (!state.failure.empty()) throw std::runtime_error(state.failure);
    }
    // Some of what is to happen later does, and something where threads wait for it.
    for (bool again = !progress; !state.events.empty() && (again || random() % 4 == 0); again = false) {
      const size_t chosen = random() % state.events.size();
      const std::function<void()> event = std::move(state.events[chosen]);
      state.events.erase(state.events.begin() + static_cast<std::ptrdiff_t>(chosen));
      event();
      progress = true;
    }
    if (!state.failure.empty()) throw std::runtime_error(state.failure);
    if (!progress) throw std::runtime_error("threads wait for one another in vain");
  }
}

}  // namespace

void fail(const std::string& what) {
  if (state.failure.empty()) state.failure = what;
  while (true) yield();  // never resumed: launch() gives up
}

void wait_until(std::function<bool()> ready) {
  if (ready()) return;
  self().ready = std::move(ready);
  yield();
  self().ready = nullptr;
}

void pause() { yield(); }

void later(std::function<void()> event) { state.events.push_back(std::move(event)); }

void meet_named(int id, unsigned threads) { meet(state.named[id], threads); }

void launch(unsigned blocks, unsigned threads, size_t shared_bytes, unsigned seed,
            const std::function<void()>& kernel) {
  if (shared_bytes > kMostShared) throw std::runtime_error("more shared memory than there is");
  std::mt19937 random(seed);
  state.kernel = &kernel;
  state.shared_bytes = shared_bytes;
  grid_dimension.x = blocks;
  for (unsigned block = 0; block < blocks; ++block) {
    block_index.x = block;
    start_block(threads);
    run_block(random);
  }
}

void sync_block() { meet(state.all, state.alive); }

const void* exchange(const void* mine, size_t bytes) {
  Warp& warp = state.warps[state.running / kLanes];
  if (warp.given.size() < kLanes * bytes) warp.given.resize(kLanes * bytes);
  std::memcpy(warp.given.data() + state.running % kLanes * bytes, mine, bytes);
  // The last one to come takes what all have given, so that the next exchange may begin.
  if (warp.meeting.arrived + 1 == kLanes) warp.taken = warp.given;
  meet(warp.meeting, kLanes);
  return warp.taken.data();
}

unsigned char* shared_at(unsigned address, size_t bytes) {
  if (address + bytes > state.shared_bytes || address % bytes != 0) fail("shared memory: wrong address");
  return shared_bytes + address;
}

void copy_async(unsigned destination, const void* source, size_t bytes, bool valid) {
  shared_at(destination, bytes);
  if (reinterpret_cast<uintptr_t>(source) % bytes != 0) fail("cp.async: the source is not aligned");
  self().uncommitted.push_back({destination, source, bytes, valid});
}

void commit_copies() {
  self().groups.push_back(std::move(self().uncommitted));
  self().uncommitted.clear();
}

void wait_copies(size_t pending) {
  for (; self().groups.size() > pending; self().groups.pop_front()) {
    for (const Copy& copy : self().groups.front()) {
      unsigned char* to = shared_bytes + copy.destination;
      if (copy.valid) {
        std::memcpy(to, copy.source, copy.bytes);
      } else {
        std::memset(to, 0, copy.bytes);
      }
    }
  }
}

}  // namespace emulation

namespace {

using hstujit::DataType;

double from_16bit(DataType type, u32 bits) {
  const auto half = static_cast<uint16_t>(bits);
  return type == DataType::kBf16 ? hstujit::from_bf16_bits(half) : hstujit::from_fp16_bits(half);
}

struct Operands {
  u32 a[4], b[2];
};

// c += a b, with kDepth values of k in a word's place: two of 16 bits, or one of 32.
template <class Element>
void multiply(float (&c)[4], const Operands& mine, int elements, const Element& element) {
  const Operands* lanes = emulation::exchange(mine);
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; ++i) {
    const int column = 2 * t + i % 2;
    double sum = c[i];
    for (int half = 0; half < 2; ++half) {
      for (int k = 0; k < 4; ++k) {
        const u32 a = lanes[4 * g + k].a[2 * half + i / 2], b = lanes[4 * column + k].b[half];
        for (int part = 0; part < elements; ++part) sum += element(a, part) * element(b, part);
      }
    }
    c[i] = static_cast<float>(sum);
  }
}

void multiply_16bit(DataType type, float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply(c, {{a[0], a[1], a[2], a[3]}, {b0, b1}}, 2,
           [&](u32 word, int part) { return from_16bit(type, word >> (16 * part) & 0xffff); });
}

void load_matrices(u32* words, int count, u32 address, bool transposed) {
  const u32* rows = emulation::exchange(address);
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto element = [&](int matrix, int row, int column) -> u32 {
    u16 value = 0;
    std::memcpy(&value, emulation::shared_at(rows[8 * matrix + row], 16) + 2 * column, 2);
    return value;
  };
  for (int i = 0; i < count; ++i) {
    words[i] = transposed ? element(i, 2 * t, g) | element(i, 2 * t + 1, g) << 16
                          : element(i, g, 2 * t) | element(i, g, 2 * t + 1) << 16;
  }
  emulation::exchange(address);  // nobody writes there before all have read
}

}  // namespace

u32 cvt_rna_tf32(float x) {
  const u32 bits = std::bit_cast<u32>(x);
  if (!std::isfinite(x)) return bits;
  return (bits + 0x1000) & ~0x1fffu;
}

u32 pack_16bit(bool bf16, float low, float high) {
  const auto bits = bf16 ? hstujit::to_bf16_bits : hstujit::to_fp16_bits;
  return bits(low) | static_cast<u32>(bits(high)) << 16;
}

void ldmatrix_x4(u32 (&words)[4], u32 address) { load_matrices(words, 4, address, false); }
void ldmatrix_x4_trans(u32 (&words)[4], u32 address) { load_matrices(words, 4, address, true); }
void ldmatrix_x2_trans(u32 (&words)[2], u32 address) { load_matrices(words, 2, address, true); }

void mma_m16n8k16_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_16bit(DataType::kBf16, c, a, b0, b1);
}
void mma_m16n8k16_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply_16bit(DataType::kFp16, c, a, b0, b1);
}
// The low bits are cut off, as tensor cores do.
void mma_m16n8k8_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply(c, {{a[0], a[1], a[2], a[3]}, {b0, b1}}, 1,
           [](u32 word, int) -> double { return std::bit_cast<float>(word & ~0x1fffu); });
}
