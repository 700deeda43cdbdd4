// A server in small: it compiles nothing, and answers from many threads.
//
//   hstujit prewarm --config examples/configs/serve.json --arch H200
//   hstujit cache export serve.hstujit
//   c++ -std=c++17 examples/serve.cpp -lhstujit -ldl -pthread -o serve
//   ./serve --config examples/configs/serve.json --cache serve.hstujit
//
// Options: --backend cuda|host (without a GPU: host, which needs no cache), --threads 32, --requests 2000.
//
// A request is a few histories of users, as q, k and v in bf16. Its answer is their attention, normalised. Every answer
// is compared with that of one thread alone, byte by byte: exit code 1 where one differs, or something fails.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <hstujit/hstujit.hpp>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "machine.hpp"

namespace {

namespace api = hstujit::api;

// As in examples/configs/serve.json.
constexpr std::int64_t kHeads = 4, kDim = 64, kWidth = kHeads * kDim;
constexpr std::int64_t kLengths[] = {256, 512};  // what kernels are prepared for
constexpr std::int64_t kLongest = 512, kSequences = 4;
constexpr std::size_t kRowBytes = kWidth * sizeof(std::uint16_t), kMostBytes = kSequences * kLongest * kRowBytes;

struct Options {
  std::string config = "examples/configs/serve.json", cache, backend = "cuda";
  int threads = 32, requests = 2000;
};

struct Request {
  std::int64_t rows = 0, longest = 0;
  Resource q, k, v, offsets;
};

// Shared by all threads: ops are made and prepared once, before the first request.
class Model {
 public:
  Model(const Options& options, const Machine& machine)
      : machine_(machine),
        context_(context_options(options)),
        config_(api::Config::load(options.config)),
        attention_(context_, config_, "attention", HSTUJIT_FORWARD, backend()),
        norm_(context_, config_, "norm", HSTUJIT_FORWARD, backend()) {
    // A kernel that the cache lacks is an Error here, which names it.
    for (const std::int64_t length : kLengths) attention_.prepare(length);
    norm_.prepare(0);  // for any number of rows
  }

  const Machine& machine() const { return machine_; }
  const api::Op& attention() const { return attention_; }
  const api::Op& norm() const { return norm_; }

 private:
  static hstujit_context_options context_options(const Options& options) {
    hstujit_context_options given = HSTUJIT_INIT(hstujit_context_options);
    if (!options.cache.empty()) given.cache_path = options.cache.c_str();  // only read
    given.on_miss = HSTUJIT_ON_MISS_FAIL;
    return given;
  }

  hstujit_backend backend() const { return machine_.gpu() ? HSTUJIT_BACKEND_CUDA : HSTUJIT_BACKEND_HOST; }

  const Machine& machine_;
  const api::Context context_;
  const api::Config config_;
  api::Op attention_, norm_;
};

// Resources of one thread: stream, memory for the largest request, launches, workspace.
class Worker {
 public:
  explicit Worker(const Model& model)
      : machine_(model.machine()),
        stream_(machine_.make_stream()),
        q_(machine_.allocate(kMostBytes)),
        k_(machine_.allocate(kMostBytes)),
        v_(machine_.allocate(kMostBytes)),
        attended_(machine_.allocate(kMostBytes)),
        normed_(machine_.allocate(kMostBytes)),
        offsets_(machine_.allocate((kSequences + 1) * sizeof(std::int64_t))),
        answer_(machine_.allocate_host(kMostBytes)),
        attention_(model.attention(), {{"q", heads(q_)},
                                       {"k", heads(k_)},
                                       {"v", heads(v_)},
                                       {"out", heads(attended_)},
                                       {"seq_offsets", tensor(offsets_, api::DataType::int64, {kSequences + 1})},
                                       {"max_seq_len", kLongest},
                                       {"alpha", 1.0 / kDim},
                                       {"scaling_seqlen", kLongest}}),
        norm_(model.norm(), {{"x", rows(attended_)}, {"out", rows(normed_)}, {"eps", 1e-5}}) {
    for (const char* name : {"q", "k", "v", "out"}) by_rows_.push_back(model.attention().position(name));
    max_seq_len_ = model.attention().position("max_seq_len");
    x_ = model.norm().position("x");
    out_ = model.norm().position("out");
    // The largest request of each kernel says how much; on one stream the launches may share it.
    std::size_t bytes = norm_.workspace_size();
    for (const std::int64_t length : kLengths) {
      set(kSequences * length, length);
      bytes = std::max(bytes, attention_.workspace_size());
    }
    memory_ = machine_.allocate(bytes);
    workspace_ = {memory_.get(), bytes};
  }

  // The answer lies in answer() until the next request.
  void serve(const Request& request) {
    const std::size_t bytes = static_cast<std::size_t>(request.rows) * kRowBytes;
    machine_.upload(q_, request.q, bytes, stream_);
    machine_.upload(k_, request.k, bytes, stream_);
    machine_.upload(v_, request.v, bytes, stream_);
    machine_.upload(offsets_, request.offsets, (kSequences + 1) * sizeof(std::int64_t), stream_);
    set(request.rows, *std::lower_bound(std::begin(kLengths), std::end(kLengths), request.longest));
    attention_.run(stream_.get(), workspace_);
    norm_.run(stream_.get(), workspace_);
    machine_.download(answer_, normed_, bytes, stream_);
    machine_.wait(stream_);
  }
  const void* answer() const { return answer_.get(); }

 private:
  api::Tensor tensor(const Resource& memory, api::DataType type, const api::Sizes& shape) const {
    return {memory.get(), type, shape, machine_.gpu() ? api::gpu() : api::host()};
  }
  api::Tensor heads(const Resource& memory, std::int64_t rows = kSequences * kLongest) const {
    return tensor(memory, api::DataType::bf16, {rows, kHeads, kDim});
  }
  api::Tensor rows(const Resource& memory, std::int64_t rows = kSequences * kLongest) const {
    return tensor(memory, api::DataType::bf16, {rows, kWidth});
  }
  // Sets what differs from request to request.
  void set(std::int64_t count, std::int64_t max_seq_len) {
    const Resource* const memory[] = {&q_, &k_, &v_, &attended_};
    for (int i = 0; i < 4; ++i) attention_.set(by_rows_[i], heads(*memory[i], count));
    attention_.set(max_seq_len_, max_seq_len);
    norm_.set(x_, rows(attended_, count));
    norm_.set(out_, rows(normed_, count));
  }

  const Machine& machine_;
  Resource stream_, q_, k_, v_, attended_, normed_, offsets_, answer_, memory_;
  api::Launch attention_, norm_;
  std::vector<int> by_rows_;
  int max_seq_len_, x_, out_;
  api::Workspace workspace_;
};

// Makes a request of 1 to kSequences histories; the others are empty.
Request make_request(const Machine& machine, std::mt19937& random) {
  Request request;
  request.offsets = machine.allocate_host((kSequences + 1) * sizeof(std::int64_t));
  auto* const offsets = static_cast<std::int64_t*>(request.offsets.get());
  const std::int64_t histories = 1 + random() % kSequences, longest = kLengths[random() % 2];
  offsets[0] = 0;
  for (std::int64_t i = 0; i < kSequences; ++i) {
    const std::int64_t length = i < histories ? 1 + static_cast<std::int64_t>(random() % longest) : 0;
    offsets[i + 1] = offsets[i] + length;
    request.longest = std::max(request.longest, length);
  }
  request.rows = offsets[kSequences];
  for (Resource* const memory : {&request.q, &request.k, &request.v}) {
    *memory = machine.allocate_host(static_cast<std::size_t>(request.rows) * kRowBytes);
    auto* const elements = static_cast<std::uint16_t*>(memory->get());
    for (std::int64_t i = 0; i < request.rows * kWidth; ++i) {
      const float value = static_cast<float>(random() % 2001) / 1000 - 1;
      std::uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      elements[i] = static_cast<std::uint16_t>(bits >> 16);  // the upper half of fp32 is bf16
    }
  }
  return request;
}

constexpr const char* kOptions =
    "--config FILE, --cache PATH, --backend cuda or host, --threads N (1024 at most), --requests N, --help";

// The number from 1 to `most` that the text is; 0 for any other text.
int count_of(const std::string& text, long most) {
  char* end = nullptr;
  const long number = std::strtol(text.c_str(), &end, 10);
  return *end == '\0' && number > 0 && number <= most ? static_cast<int>(number) : 0;
}

Options read(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--help") {
      std::printf("serve: answers requests from many threads; options: %s\n", kOptions);
      std::exit(0);
    }
    if (name == "--config") {
      options.config = value;
    } else if (name == "--cache") {
      options.cache = value;
    } else if (name == "--backend" && (value == "cuda" || value == "host")) {
      options.backend = value;
    } else if (name == "--threads" && count_of(value, 1024) > 0) {
      options.threads = count_of(value, 1024);
    } else if (name == "--requests" && count_of(value, 1'000'000'000) > 0) {
      options.requests = count_of(value, 1'000'000'000);
    } else {
      throw std::runtime_error("serve: " + name + (value.empty() ? "" : " " + value) +
                               " is no option; allowed: " + kOptions);
    }
  }
  return options;
}

double percentile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = read(argc, argv);
  const Machine machine(options.backend == "cuda");
  const Model model(options, machine);

  // One thread answers each of these first.
  constexpr std::size_t kDifferent = 16;
  std::mt19937 random(1);
  std::vector<Request> requests;
  std::vector<std::vector<char>> answers;
  Worker alone(model);
  for (std::size_t i = 0; i < kDifferent; ++i) {
    requests.push_back(make_request(machine, random));
    alone.serve(requests[i]);
    const char* const answer = static_cast<const char*>(alone.answer());
    answers.emplace_back(answer, answer + static_cast<std::size_t>(requests[i].rows) * kRowBytes);
  }

  using Clock = std::chrono::steady_clock;
  std::atomic<int> next{0}, ready{0}, different{0};
  std::mutex mutex;
  std::vector<double> milliseconds;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      machine.enter();
      Worker worker(model);
      for (++ready; ready < options.threads;) std::this_thread::yield();
      std::vector<double> own;
      for (int i = next++; i < options.requests; i = next++) {
        const std::size_t which = static_cast<std::size_t>(i) % kDifferent;
        const Clock::time_point begin = Clock::now();
        worker.serve(requests[which]);
        own.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
        if (std::memcmp(worker.answer(), answers[which].data(), answers[which].size()) != 0) ++different;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      milliseconds.insert(milliseconds.end(), own.begin(), own.end());
    } catch (...) {
      ready = options.threads;
      next = options.requests;
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < options.threads; ++i) threads.emplace_back(work);
  } catch (...) {  // there is no thread left: the others end
    next = options.requests;
    ready = options.threads;
    const std::lock_guard<std::mutex> lock(mutex);
    failure = std::current_exception();
  }
  while (ready < options.threads) std::this_thread::yield();
  const Clock::time_point begin = Clock::now();
  for (std::thread& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (failure) std::rethrow_exception(failure);

  std::sort(milliseconds.begin(), milliseconds.end());
  std::printf("%d threads, %zu requests: %.0f requests/s\n", options.threads, milliseconds.size(),
              static_cast<double>(milliseconds.size()) / seconds);
  std::printf("latency: median %.2f ms, 95 %% %.2f ms, 99 %% %.2f ms\n", percentile(milliseconds, 0.5),
              percentile(milliseconds, 0.95), percentile(milliseconds, 0.99));
  std::printf("%d answers differ from those of one thread\n", different.load());
  if (std::fflush(stdout) != 0) throw std::runtime_error("serve: cannot write to standard output");
  return different == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
