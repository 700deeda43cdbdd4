#include "operations/tuning/worker/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/text.h"

extern char** environ;

namespace hstujit {

namespace {

using std::chrono::milliseconds;

// A worker whose socket has closed is about to end: this is how long its signal may take to show.
constexpr milliseconds kGrace{2'000};

WorkerEnding ending_of(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return {fmt::format("was killed by signal {} ({})", number, sigdescr_np(number) ? sigdescr_np(number) : "unknown"),
            number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGABRT};
  }
  return {fmt::format("exited with status {}", WEXITSTATUS(status)), false};
}

// Shortens the message that the record keeps of a rejected candidate.
std::string shortened(std::string message) {
  constexpr size_t kLongestMessage = size_t{16} << 10;
  if (message.size() <= kLongestMessage) return message;
  return as_utf8(message.substr(0, kLongestMessage)) + "...";
}

Status status_of(const nlohmann::ordered_json& head, const std::string& action) {
  try {
    return {code_from(head.at("code").get<int>()), shortened(head.at("message").get<std::string>())};
  } catch (const Json::exception& error) {
    return {Code::kInternal, fmt::format("the worker's answer to \"{}\": {}", action, error.what())};
  }
}

// Settings of posix_spawn for the child, released at the end.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    keep(posix_spawn_file_actions_init(&actions_));
    keep(posix_spawn_file_actions_adddup2(&actions_, socket, kWorkerSocket));
    // Reports go to the standard output of this process: what a compiler or a driver prints is none of theirs.
    keep(posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0));
    keep(posix_spawn_file_actions_addclosefrom_np(&actions_, kWorkerSocket + 1));
    keep(posix_spawnattr_init(&attributes_));
    // Signals that a host process blocks or ignores end a worker as usual.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    keep(posix_spawnattr_setsigmask(&attributes_, &none));
    keep(posix_spawnattr_setsigdefault(&attributes_, &all));
    keep(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // The first thing that went wrong; the settings may have lacked memory.
  int spawn(pid_t* id, const std::string& program) const {
    if (error_ != 0) return error_;
    std::string name = program;
    std::array<char*, 2> arguments = {name.data(), nullptr};
    return posix_spawn(id, program.c_str(), &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  void keep(int error) {
    if (error_ == 0) error_ = error;
  }

  int error_ = 0;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::string& program, milliseconds limit,
                                           const Cancellation& cancellation) {
  HSTUJIT_RETURN_IF_ERROR(check_regular_file("start the worker process", program));
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Status(Code::kIo, fmt::format("cannot make the socket of a worker process: {}", std::strerror(errno)));
  }
  Descriptor ours(ends[0]);
  std::optional<Descriptor> theirs(ends[1]);
  pid_t id = -1;
  if (const int error = SpawnSettings(theirs->number()).spawn(&id, program); error != 0) {
    return file_error("start the worker process", program, error);
  }
  theirs.reset();  // or it would not show that the worker has ended
  WorkerProcess worker(id, std::move(ours), cancellation);
  const WorkerAnswer answer = worker.ask({{{"do", "generator"}}, ""}, limit);
  if (!answer.answered()) {
    const bool hurried = answer.fate == WorkerAnswer::Fate::kTimedOut && limit < kWorkerStartLimit;
    return Status(Code::kIo,
                  fmt::format("{}: {}{}", quote(program), answer.ending,
                              hurried ? fmt::format("; tuning waits for {} s", kWorkerStartLimit.count() / 1000)
                                      : std::string()));
  }
  // Older workers do not know the request, and answer that.
  HSTUJIT_RETURN_IF_ERROR(
      check_generator(fmt::format("the worker {}", quote(program)), text_member(answer.message.head, "generator")));
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)), channel_(std::move(other.channel_)) {}

WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this != &other) {
    end(milliseconds(0));
    id_ = std::exchange(other.id_, -1);
    channel_ = std::move(other.channel_);
  }
  return *this;
}

WorkerProcess::~WorkerProcess() { end(milliseconds(0)); }

WorkerAnswer WorkerProcess::ask(const WorkerMessage& request, milliseconds limit,
                                const std::function<bool(const nlohmann::ordered_json&)>& take_note) {
  const std::string action = request.head.value("do", "");
  const auto deadline = std::chrono::steady_clock::now() + limit;
  WorkerAnswer answer;
  WorkerChannel::End why = WorkerChannel::End::kClosed;
  bool answered = channel_.send(request, deadline);
  while (answered && (answered = channel_.receive(&answer.message, deadline, &why)) && take_note &&
         take_note(answer.message.head)) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    answered = false;
    why = WorkerChannel::End::kTimeout;
  }
  if (answered) {
    answer.status = status_of(answer.message.head, action);
  } else if (why == WorkerChannel::End::kTimeout) {
    end(milliseconds(0));
    answer.fate = WorkerAnswer::Fate::kTimedOut;
    answer.ending = fmt::format("no answer to \"{}\" within {} s; the worker process was killed", action,
                                static_cast<double>(limit.count()) / 1000.0);
  } else if (why == WorkerChannel::End::kMalformed) {
    end(milliseconds(0));
    answer.fate = WorkerAnswer::Fate::kDied;
    answer.ending = fmt::format("what came for \"{}\" is no message of a worker; the process was killed", action);
  } else {
    const WorkerEnding ending = end(kGrace);
    answer.fate = WorkerAnswer::Fate::kDied;
    answer.ending = fmt::format("the worker process {} during \"{}\"", ending.text, action);
    answer.from_outside = ending.from_outside;
  }
  return answer;
}

WorkerEnding WorkerProcess::end(milliseconds grace) {
  if (id_ < 0) return {"has ended", true};
  constexpr milliseconds kStep{5};
  int status = 0;
  pid_t reaped = ::waitpid(id_, &status, WNOHANG);
  for (milliseconds waited{0}; reaped == 0 && waited < grace; waited += kStep) {
    std::this_thread::sleep_for(kStep);
    reaped = ::waitpid(id_, &status, WNOHANG);
  }
  if (reaped == 0) {
    ::kill(id_, SIGKILL);
    do {
      reaped = ::waitpid(id_, &status, 0);
    } while (reaped < 0 && errno == EINTR);
  }
  // A host process that ignores SIGCHLD has its children reaped for it.
  WorkerEnding ending = reaped == id_ ? ending_of(status) : WorkerEnding{"ended", true};
  id_ = -1;
  return ending;
}

}  // namespace hstujit
