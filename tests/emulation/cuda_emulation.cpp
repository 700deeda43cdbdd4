#include "tests/emulation/cuda_emulation.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/emulation/halves.h"
#include "tests/emulation/parts.h"
#include "tests/emulation/stacks.h"

#undef shared_bytes
#undef static_bytes

namespace emulation {

EmulatedIndex thread_index, block_index, grid_dimension, block_dimension;
unsigned char* block_memory;
unsigned char* static_memory;
unsigned thread_number, block_rank, block_count;

namespace {

constexpr size_t kMaxShared = 256 * 1024;
constexpr size_t kGuard = 4096;  // bytes behind a block's shared memory
constexpr size_t kAlignment = 1024;
// Emulated kernels take up to 6 KB of it; the machine clears all of it for each thread of a process.
constexpr size_t kStack = 64 * 1024;
// Stacks begin at as many different places of a page, so that those of a block are not all in the same sets of a cache.
constexpr size_t kStackColours = 61, kColourBytes = 320;
constexpr size_t kMaxThreads = 8 * 1024;  // of a cluster
constexpr unsigned kLanes = 32;

struct Copy {
  unsigned destination;
  const void* source;
  size_t bytes, present;
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
  Place place;
  bool entered = false;  // has something on its stack
  std::function<bool()> ready;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> uncommitted;
};

// Whether a thread may run: apart from the rest of it, since the scheduler asks for all threads in every turn.
struct Wait {
  bool done = false;
  bool asks = false;   // its `ready`
  unsigned turns = 0;  // of the others, before its own
  const Meeting* at = nullptr;
  unsigned generation = 0;  // of the meeting, that it waits for

  bool is_over() const { return at == nullptr || static_cast<int>(at->generation - generation) >= 0; }
};

struct FreeMemory {
  void operator()(unsigned char* memory) const { std::free(memory); }
};

// The stacks of all threads side by side: a few large pages, which processors keep track of together, where a page of
// each stack would be more than they can.
unsigned char* stack_of(size_t number) {
  static unsigned char* const stacks = [] {
    void* const memory = ::mmap(nullptr, kMaxThreads * kStack, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, kMaxThreads * kStack, MADV_HUGEPAGE);
    return static_cast<unsigned char*>(memory);
  }();
  if (number >= kMaxThreads) throw std::runtime_error("more threads than a cluster has");
  return stacks + number * kStack;
}

struct Block {
  std::unique_ptr<unsigned char, FreeMemory> memory{
      static_cast<unsigned char*>(std::aligned_alloc(kAlignment, kMaxShared))};
  std::vector<Warp> warps;
  Meeting all;
  std::map<int, Meeting> named;
  unsigned alive = 0;
  size_t declared = 0;          // bytes of its memory that the kernel may use
  size_t written = kMaxShared;  // bytes of it that may not be as a block finds them
};

// The cluster that runs: a block where there are none.
struct ClusterState {
  std::vector<Thread> threads;  // of all its blocks
  std::vector<Wait> waits;      // of each
  std::vector<Block> blocks;
  Meeting all;
  std::vector<std::function<void()>> events;
  unsigned alive = 0;  // threads
  bool in_thread = false;
  Place scheduler;
  const std::function<void()>* kernel = nullptr;
  std::string failure;
};

ClusterState state;

Thread& self() { return state.threads[thread_number]; }
Wait& own_wait() { return state.waits[thread_number]; }
Block& own_block() { return state.blocks[block_rank]; }

void yield() { switch_stacks(self().place, state.scheduler); }

// Whether that was the last one to come.
bool arrive_at(Meeting& meeting, unsigned members) {
  if (++meeting.arrived != members) return false;
  meeting.arrived = 0;
  ++meeting.generation;
  return true;
}

void meet(Meeting& meeting, unsigned members) {
  if (arrive_at(meeting, members)) return;
  own_wait().at = &meeting;
  own_wait().generation = meeting.generation + 1;
  yield();
  own_wait().at = nullptr;
}

// Threads that have left take no part in barriers.
void let_go(Meeting& meeting, unsigned alive) {
  if (meeting.arrived == 0 || meeting.arrived != alive) return;
  meeting.arrived = 0;
  ++meeting.generation;
}

// The bytes that a stack ends with are as they were: none has grown into the next one.
void check_stacks() {
  for (size_t number = 0; number < state.threads.size(); ++number) {
    uint64_t last = 0;
    std::memcpy(&last, stack_of(number), sizeof(last));
    if (last != 0) throw std::runtime_error("a thread's stack is too small");
  }
}

// Runs the kernel once for each cluster that the thread is of.
void thread_main() {
  while (true) {
    (*state.kernel)();
    own_wait().done = true;
    let_go(own_block().all, --own_block().alive);
    let_go(state.all, --state.alive);
    yield();
  }
}

// Memory behind what the kernel has declared is as it was. On a GPU it is another block's, or none.
void check_memory() {
  for (Block& block : state.blocks) {
    block.written = std::min(kMaxShared, block.declared + kGuard);
    const unsigned char* const memory = block.memory.get();
    const auto untouched = [](unsigned char byte) { return byte == 0xff; };
    if (std::all_of(memory + block.declared, memory + block.written, untouched)) continue;
    block.written = kMaxShared;
    throw std::runtime_error("shared memory is written behind what the kernel has declared");
  }
}

// One that a failure has left somewhere in a kernel begins anew.
void start_thread(Thread& thread, Wait& wait) {
  if (!wait.done) thread.entered = false;
  wait = {};
  thread.ready = nullptr;
  thread.groups.clear();
  thread.uncommitted.clear();
}

size_t dynamic_bytes(const Grid& grid) { return (grid.shared_bytes + kAlignment - 1) / kAlignment * kAlignment; }

void start_cluster(const Grid& grid) {
  state.threads.resize(size_t{grid.cluster} * grid.threads);
  state.waits.resize(state.threads.size());
  state.blocks.resize(grid.cluster);
  for (Block& block : state.blocks) {
    block.warps.assign((grid.threads + kLanes - 1) / kLanes, {});
    block.all = {};
    block.named.clear();
    block.alive = grid.threads;
    std::memset(block.memory.get(), 0xff, block.written);  // NaN in every type
    block.written = kMaxShared;
    block.declared = grid.shared_bytes;
  }
  state.all = {};
  state.events.clear();
  reset_hopper();
  state.alive = static_cast<unsigned>(state.threads.size());
  state.failure.clear();
  for (size_t i = 0; i < state.threads.size(); ++i) start_thread(state.threads[i], state.waits[i]);
}

void run_thread(unsigned number, const Grid& grid, unsigned first_block) {
  thread_number = number;
  block_rank = grid.cluster == 1 ? 0 : number / grid.threads;  // a division for each turn would show
  thread_index.x = number - block_rank * grid.threads;
  block_index.x = first_block + block_rank;
  block_memory = own_block().memory.get();
  static_memory = block_memory + dynamic_bytes(grid);
  state.in_thread = true;
  Thread& thread = state.threads[number];
  if (thread.entered) {
    switch_stacks(state.scheduler, thread.place);
  } else {
    thread.entered = true;
    begin_stack(state.scheduler, stack_of(number), kStack - number % kStackColours * kColourBytes, thread_main);
  }
  state.in_thread = false;
}

// Chooses the threads that may run now, in any order. Returns whether there are some that pause.
bool choose_threads(std::vector<unsigned>& chosen, std::mt19937& random) {
  chosen.clear();
  bool paused = false;
  for (unsigned i = 0; i < state.waits.size(); ++i) {
    Wait& wait = state.waits[i];
    if (wait.turns > 0) {
      --wait.turns;
      paused = true;
    } else if (!wait.done && wait.is_over()) {
      chosen.push_back(i);
    }
  }
  std::shuffle(chosen.begin(), chosen.end(), random);
  return paused;
}

void run_cluster(const Grid& grid, unsigned first_block, std::mt19937& random) {
  std::vector<unsigned> chosen;
  while (state.alive > 0) {
    bool progress = choose_threads(chosen, random);
    for (const unsigned i : chosen) {
      if (state.waits[i].asks && !state.threads[i].ready()) continue;
      run_thread(i, grid, first_block);
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
  check_memory();
}

}  // namespace

void fail(const std::string& what) {
  if (state.failure.empty()) state.failure = what;
  while (true) yield();  // never resumed: launch() gives up
}

void wait_until(std::function<bool()> ready) {
  if (ready()) return;
  self().ready = std::move(ready);
  own_wait().asks = true;
  yield();
  own_wait().asks = false;
}

void pause() { yield(); }

void pause_for(unsigned turns) {
  own_wait().turns = turns - 1;
  yield();
}

size_t own_bytes() { return own_block().declared; }

void later(std::function<void()> event) { state.events.push_back(std::move(event)); }

void meet_named(int id, unsigned threads) { meet(own_block().named[id], threads); }

void count_named(int id, unsigned threads) { arrive_at(own_block().named[id], threads); }

void meet_cluster() { meet(state.all, state.alive); }

void declare_shared(size_t bytes) {
  size_t& declared = own_block().declared;
  declared = std::max(declared, static_cast<size_t>(static_memory - block_memory) + bytes);
  if (declared > kMaxShared) fail("shared memory: more than there is");
}

void launch(const Grid& grid, unsigned seed, const std::function<void()>& kernel) {
  if (grid.shared_bytes > kMaxShared) throw std::runtime_error("more shared memory than there is");
  std::mt19937 random(seed);
  state.kernel = &kernel;
  grid_dimension.x = grid.blocks;
  block_dimension.x = grid.threads;
  block_count = grid.cluster;
  for (unsigned block = 0; block < grid.blocks; block += grid.cluster) {
    start_cluster(grid);
    run_cluster(grid, block, random);
  }
  check_stacks();
}

void sync_block() { meet(own_block().all, own_block().alive); }

const void* exchange(const void* mine, size_t bytes) {
  Warp& warp = own_block().warps[thread_index.x / kLanes];
  if (warp.given.size() < kLanes * bytes) warp.given.resize(kLanes * bytes);
  std::memcpy(warp.given.data() + thread_index.x % kLanes * bytes, mine, bytes);
  // The last one to come takes what all have given, so that the next exchange may begin.
  if (warp.meeting.arrived + 1 == kLanes) warp.taken = warp.given;
  meet(warp.meeting, kLanes);
  return warp.taken.data();
}

unsigned char* shared_at(unsigned address, size_t bytes) {
  if (state.in_thread && address >> kRankShift != block_rank) fail("shared memory: an address of another block");
  return cluster_at(address, bytes);
}

unsigned char* cluster_at(unsigned address, size_t bytes) {
  const unsigned rank = address >> kRankShift, offset = address & ((1u << kRankShift) - 1);
  if (rank >= block_count || offset + bytes > state.blocks[rank].declared || offset % bytes != 0) {
    fail("shared memory: wrong address");
  }
  if (state.blocks[rank].alive == 0) fail("shared memory: its block has ended");
  return state.blocks[rank].memory.get() + offset;
}

void check_aligned(const void* address, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0) fail("an access is not aligned");
}

void copy_async(unsigned destination, const void* source, size_t bytes, size_t present) {
  shared_at(destination, bytes);
  if (reinterpret_cast<uintptr_t>(source) % bytes != 0) fail("cp.async: the source is not aligned");
  self().uncommitted.push_back({destination, source, bytes, present});
}

void commit_copies() {
  self().groups.push_back(std::move(self().uncommitted));
  self().uncommitted.clear();
}

void wait_copies(size_t pending) {
  for (; self().groups.size() > pending; self().groups.pop_front()) {
    for (const Copy& copy : self().groups.front()) {
      unsigned char* to = shared_at(copy.destination, copy.bytes);
      std::memcpy(to, copy.source, copy.present);
      std::memset(to + copy.present, 0, copy.bytes - copy.present);
    }
  }
}

}  // namespace emulation

namespace {

struct Operands {
  u32 a[4], b[2];
};

// c += a b, with kElements values of k in a word's place: two of 16 bits, or one of 32.
template <unsigned kElements, class Element>
void multiply(float (&c)[4], const Operands& mine, const Element& element) {
  const Operands* lanes = emulation::exchange(mine);
  const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  constexpr unsigned kDepth = 2 * 4 * kElements;
  emulation::Pair a[2][kDepth], b[kDepth];
  for (unsigned k = 0; k < kDepth; ++k) {
    const unsigned half = k / kElements / 4, lane = k / kElements % 4, part = k % kElements;
    for (unsigned i = 0; i < 2; ++i) a[i][k] = emulation::twice(element(lanes[4 * g + lane].a[2 * half + i], part));
    b[k] = emulation::Pair{element(lanes[8 * t + lane].b[half], part), element(lanes[8 * t + 4 + lane].b[half], part)};
  }
  emulation::multiply(a, b, /*accumulate=*/true, c);
}

template <bool kBf16>
void multiply_16bit(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const emulation::Halves<kBf16> number;
  multiply<2>(c, {{a[0], a[1], a[2], a[3]}, {b0, b1}},
              [&](u32 word, unsigned part) { return number(static_cast<uint16_t>(word >> (16 * part))); });
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

namespace {

template <class T>
u32 load_global(const void* address, bool valid) {
  if (!valid) return 0;
  if (reinterpret_cast<uintptr_t>(address) % sizeof(T) != 0) emulation::fail("ld.global: not aligned");
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

}  // namespace

u32 ld_global_nc_u32(const void* address, bool valid) { return load_global<u32>(address, valid); }
u32 ld_global_nc_u16(const void* address, bool valid) { return load_global<u16>(address, valid); }

float unpack_16bit(bool bf16, u32 half) { return emulation::from_half(bf16, static_cast<uint16_t>(half)); }

u32 pack_16bit(bool bf16, float low, float high) {
  const auto bits = bf16 ? hstujit::to_bf16_bits : hstujit::to_fp16_bits;
  return bits(low) | static_cast<u32>(bits(high)) << 16;
}

void ldmatrix_x4(u32 (&words)[4], u32 address) { load_matrices(words, 4, address, false); }
void ldmatrix_x4_trans(u32 (&words)[4], u32 address) { load_matrices(words, 4, address, true); }
void ldmatrix_x2_trans(u32 (&words)[2], u32 address) { load_matrices(words, 2, address, true); }

void mma_m16n8k16_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_16bit<true>(c, a, b0, b1); }
void mma_m16n8k16_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { multiply_16bit<false>(c, a, b0, b1); }
// The low bits are cut off, as tensor cores do.
void mma_m16n8k8_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  multiply<1>(c, {{a[0], a[1], a[2], a[3]}, {b0, b1}},
              [](u32 word, unsigned) { return std::bit_cast<float>(word & ~0x1fffu); });
}
