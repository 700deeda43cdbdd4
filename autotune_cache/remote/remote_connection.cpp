#include "autotune_cache/remote/remote_connection.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace hstujit {
namespace {

// Statuses of HTTP that decide something here.
constexpr int kNotThere = 404;
constexpr int kRequestTimeout = 408;
constexpr int kConflict = 409;
constexpr int kGone = 410;
constexpr int kTooLarge = 413;
constexpr int kTooManyRequests = 429;
constexpr int kServerError = 500;
constexpr int kNotImplemented = 501;

// One damaged entry is no reason to leave the others alone, and the next upload replaces it.
constexpr int kWrongAnswersBorne = 2;

// Answers to a PUT into a collection that is missing: WebDAV's, some object stores', and nginx's.
bool lacks_collection(int status) { return status == kConflict || status == kNotThere || status == kServerError; }

// Answers to a PUT after which the next one fares no better. Redirects are among them.
bool is_refusal(int status) {
  if (status == kRequestTimeout || status == kTooManyRequests) return false;
  return (status >= 300 && status < kServerError) || status == kNotImplemented;
}

struct Failure {
  std::string kind;
  std::string reason;
};

Failure failure_of(const HttpAnswer& answer, std::string_view method) {
  if (answer.status == 0) return {answer.failure, answer.detail};
  const std::string reason = fmt::format("it answers {} to {}", answer.status, method);
  return {reason, reason};
}

}  // namespace

RemoteConnection::RemoteConnection(RemoteUrl url, const RemoteOptions& options, Log log)
    : url_(std::move(url)),
      name_(url_.base),
      options_(options),
      log_(std::move(log)),
      backoff_(options.first_pause, options.max_pause),
      upload_backoff_(options.first_pause, options.max_pause),
      uploads_(options.upload) {}

HttpClient* RemoteConnection::client() {
  std::call_once(opened_, [this] {
    auto opened = HttpClient::open(url_, options_.times);
    if (opened.ok()) {
      client_ = std::move(opened).value();
    } else {
      open_status_ = opened.status();
      log_once("open", "remote_unusable", "", open_status_.message());
    }
  });
  return client_.get();
}

void RemoteConnection::log_once(const std::string& kind, std::string_view event, const std::string& path,
                                std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!logged_.insert(kind).second) return;
  }
  log_.event(LogCategory::kCache, event, {{"remote", name_}, {"path", path}, {"reason", reason}});
}

void RemoteConnection::failed(uint64_t attempt, const std::string& kind, const std::string& path,
                              std::string_view reason) {
  backoff_.failed(attempt);
  log_once(kind, "remote_failed", path, reason);
}

void RemoteConnection::answered(uint64_t attempt, const std::string& path, bool slow) {
  slow_ = slow;
  if (!slow) {
    backoff_.worked();
    return;
  }
  failed(attempt, "slow", path,
         fmt::format("it takes more than {} ms to answer, which counts as a failure", options_.slow.count()));
}

Result<RemoteConnection::Fetched> RemoteConnection::get(const std::string& path, size_t max_bytes,
                                                        const std::atomic<bool>* stop, const Fetched* first) {
  const Status unusable(Code::kIo, "the remote cache does not answer");
  if (client() == nullptr) return unusable;
  const std::optional<uint64_t> attempt = first != nullptr ? first->attempt : backoff_.begin();
  if (!attempt) return unusable;
  const auto start = std::chrono::steady_clock::now();
  HttpAnswer answer = client_->send({"GET", path, {}, max_bytes, stop});
  const bool slow = (first != nullptr && first->slow) || std::chrono::steady_clock::now() - start > options_.slow;
  if (answer.ok()) return Fetched{std::move(answer.body), *attempt, slow};
  if (answer.status == kNotThere || answer.status == kGone) {
    answered(*attempt, path, slow);
    return Status(Code::kNotFound, "it is not in the remote cache");
  }
  if (answer.no_memory) {
    answered(*attempt, path, slow);
    return Status(Code::kOutOfMemory, answer.detail);
  }
  if (stop != nullptr && *stop) return unusable;
  const Failure failure = failure_of(answer, "GET");
  failed(*attempt, failure.kind, path, failure.reason);
  return unusable;
}

void RemoteConnection::accept(const Fetched& fetched, const std::string& path) {
  wrong_ = 0;
  answered(fetched.attempt, path, fetched.slow);
}

void RemoteConnection::distrust(const Fetched& fetched, const std::string& path, std::string_view reason) {
  if (++wrong_ > kWrongAnswersBorne || fetched.slow) backoff_.failed(fetched.attempt);
  log_once("wrong bytes", "remote_failed", path, fmt::format("it gives what was not asked for: {}", reason));
}

HttpAnswer RemoteConnection::put_once(const std::string& path, std::string_view body, const std::atomic<bool>* stop) {
  HttpRequest request{"PUT", path, body};
  request.stop = stop;
  return client_->send(request);
}

bool RemoteConnection::put(const std::string& path, std::string_view body, const std::atomic<bool>* stop) {
  if (!uploads_ || slow_ || client() == nullptr) return false;
  const std::optional<uint64_t> upload_attempt = upload_backoff_.begin();
  if (!upload_attempt) return false;
  const std::optional<uint64_t> attempt = backoff_.begin();
  if (!attempt) return false;
  HttpAnswer answer = put_once(path, body, stop);
  if (lacks_collection(answer.status) && !collections_made_.exchange(true)) {
    // Others may be making them, too: what counts is how the second PUT ends.
    for (const char* collection : {"/ac/", "/cas/"}) {
      HttpRequest request{"MKCOL", collection, {}};
      request.stop = stop;
      client_->send(request);
    }
    answer = put_once(path, body, stop);
  }
  if (answer.ok()) {
    backoff_.worked();
    upload_backoff_.worked();
    return true;
  }
  if (stop != nullptr && *stop) return false;
  const Failure failure = failure_of(answer, "PUT");
  if (answer.status == 0) {
    failed(*attempt, failure.kind, path, failure.reason);
  } else if (answer.status == kTooLarge) {
    log_once(failure.kind, "remote_failed", path, failure.reason);
  } else if (is_refusal(answer.status)) {
    uploads_ = false;
    log_once("uploads", "remote_uploads_off", path, failure.reason);
  } else {
    // It answers: looking up goes on.
    upload_backoff_.failed(*upload_attempt);
    log_once(failure.kind, "remote_failed", path, failure.reason);
  }
  return false;
}

Status RemoteConnection::health() {
  if (client() == nullptr) return open_status_;
  const std::string nobodys(64, '0');
  const HttpAnswer answer = client_->send({"GET", "/ac/" + nobodys, {}});
  if (answer.ok() || answer.status == kNotThere || answer.status == kGone) return {};
  return Status(Code::kIo, failure_of(answer, "GET").reason);
}

}  // namespace hstujit
