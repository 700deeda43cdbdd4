#include "autotune_cache/remote/http_client.h"

// Its macros would name the functions themselves, which nothing here links.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/support/credentials.h"
#include "compiler/support/descriptor.h"
#include "compiler/support/dynamic_library.h"
#include "compiler/support/write_signals.h"

namespace hstujit {
namespace {

constexpr long kSlowBytesPerSecond = 1024;
constexpr size_t kIdleConnections = 16;
// Bytes of one answer: of all its lines before and behind the body. libcurl keeps them, and bounds those behind it by
// nothing.
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_reset) reset = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_getinfo) info = nullptr;
  decltype(&::curl_easy_strerror) text = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_list = nullptr;
};

Result<Curl> open_curl() {
  // Kept: libcurl leaves threads that resolve names and what it set up for TLS.
  HSTUJIT_ASSIGN_OR_RETURN(
      const DynamicLibrary library,
      DynamicLibrary::open("libcurl, which talks to the remote cache,", {"libcurl.so.4", "libcurl-gnutls.so.4"},
                           Code::kNotFound, DynamicLibrary::Keep::kForever));
  Curl curl;
  const auto take = [&]<typename Function>(Function*& function, const char* name) -> Status {
    HSTUJIT_ASSIGN_OR_RETURN(function, library.function<Function>(name));
    return {};
  };
  HSTUJIT_RETURN_IF_ERROR(take(curl.global_init, "curl_global_init"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.init, "curl_easy_init"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.reset, "curl_easy_reset"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.cleanup, "curl_easy_cleanup"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.set, "curl_easy_setopt"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.perform, "curl_easy_perform"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.info, "curl_easy_getinfo"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.text, "curl_easy_strerror"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.append, "curl_slist_append"));
  HSTUJIT_RETURN_IF_ERROR(take(curl.free_list, "curl_slist_free_all"));
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
    return Status(Code::kNotFound, fmt::format("libcurl does not start: {}", curl.text(code)));
  return curl;
}

// Opened once: curl_global_init is for one thread at a time. Never destroyed: a program may end while an upload runs.
const Result<Curl>& curl() {
  static const auto* const opened = new Result<Curl>(open_curl());
  return *opened;
}

struct Headers {
  size_t bytes = 0;
  bool too_long = false;
};

struct Body {
  std::string bytes;
  size_t max = 0;
  bool too_long = false;
  bool no_memory = false;
};

// Fewer bytes than were given: libcurl ends the request.
constexpr size_t kEnd = 0;

size_t count_header(char* /*line*/, size_t size, size_t count, void* user) {
  Headers& headers = *static_cast<Headers*>(user);
  const size_t bytes = size * count;
  if (bytes > kMaxHeaderBytes - headers.bytes) {
    headers.too_long = true;
    return kEnd;
  }
  headers.bytes += bytes;
  return bytes;
}

size_t take_bytes(char* data, size_t size, size_t count, void* user) {
  Body& body = *static_cast<Body*>(user);
  const size_t bytes = size * count;
  if (bytes > body.max - body.bytes.size()) {
    body.too_long = true;
    return kEnd;
  }
  try {
    body.bytes.append(data, bytes);
  } catch (const std::exception&) {  // no exception goes through libcurl's frames
    body.no_memory = true;
    return kEnd;
  }
  return bytes;
}

// As libcurl opens one, but not for the programs that this process starts: its own way leaves them the connection.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return above_standard(::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
}

int shall_stop(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(user)->load() ? 1 : 0;
}

}  // namespace

// Handles whose connections stay open between requests. A forked child shares its parent's sockets: it leaves those
// alone, neither used nor closed, and makes its own.
struct HttpClient::Connections {
  std::mutex mutex;
  std::vector<CURL*> idle;
  const pid_t owner = ::getpid();

  CURL* take() {
    if (::getpid() == owner) {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        CURL* const handle = idle.back();
        idle.pop_back();
        return handle;
      }
    }
    return curl()->init();
  }

  void give_back(CURL* handle) {
    if (::getpid() == owner) {
      const std::lock_guard lock(mutex);
      if (idle.size() < kIdleConnections) {
        idle.push_back(handle);
        return;
      }
    }
    curl()->cleanup(handle);
  }

  ~Connections() {
    if (::getpid() != owner) return;
    const WriteSignalsBlocked blocked;
    for (CURL* const handle : idle) curl()->cleanup(handle);
  }
};

HttpClient::HttpClient(RemoteUrl url, const HttpTimes& times)
    : url_(std::move(url)), times_(times), connections_(std::make_unique<Connections>()) {}

HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::open(const RemoteUrl& url, const HttpTimes& times) {
  if (!curl().ok()) return curl().status();
  return std::unique_ptr<HttpClient>(new HttpClient(url, times));
}

namespace {

// State that libcurl reads and writes during a request.
struct Exchange {
  std::string url;
  std::array<char, CURL_ERROR_SIZE> reason = {};
  Headers headers_of_answer;
  Body body;
  std::unique_ptr<curl_slist, decltype(&::curl_slist_free_all)> headers{nullptr, curl()->free_list};
};

// The options of one request, up to the first that libcurl does not take: it copies texts, and may lack memory.
class RequestOptions {
 public:
  explicit RequestOptions(CURL* handle) : handle_(handle) { curl()->reset(handle); }

  template <typename Value>
  void set(CURLoption option, Value value) {
    if (code_ == CURLE_OK) code_ = curl()->set(handle_, option, value);
  }
  void add_header(Exchange& exchange, const char* line) {
    if (code_ != CURLE_OK) return;
    curl_slist* const all = curl()->append(exchange.headers.get(), line);
    if (all == nullptr) {
      code_ = CURLE_OUT_OF_MEMORY;
      return;
    }
    static_cast<void>(exchange.headers.release());  // it is part of `all`
    exchange.headers.reset(all);
  }
  CURLcode code() const { return code_; }

 private:
  CURL* const handle_;
  CURLcode code_ = CURLE_OK;
};

void set_transfer(RequestOptions& options, const HttpTimes& times, Exchange& exchange) {
  options.set(CURLOPT_URL, exchange.url.c_str());
  options.set(CURLOPT_NOSIGNAL, 1L);
  options.set(CURLOPT_ERRORBUFFER, exchange.reason.data());
  options.set(CURLOPT_USERAGENT, "hstujit");
  options.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(times.connect.count()));
  options.set(CURLOPT_TIMEOUT_MS, static_cast<long>(times.whole.count()));
  options.set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  options.set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(times.stalled.count()));
  options.set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  options.set(CURLOPT_HEADERFUNCTION, &count_header);
  options.set(CURLOPT_HEADERDATA, &exchange.headers_of_answer);
  options.set(CURLOPT_WRITEFUNCTION, &take_bytes);
  options.set(CURLOPT_WRITEDATA, &exchange.body);
}

void set_request(RequestOptions& options, const RemoteUrl& url, const HttpRequest& request, Exchange& exchange) {
  if (!url.user.empty()) {
    options.set(CURLOPT_USERNAME, url.user.c_str());
    options.set(CURLOPT_PASSWORD, url.password.c_str());
  }
  if (request.stop != nullptr) {
    options.set(CURLOPT_NOPROGRESS, 0L);
    options.set(CURLOPT_XFERINFOFUNCTION, &shall_stop);
    options.set(CURLOPT_XFERINFODATA, request.stop);
  }
  if (request.method != "GET") options.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method != "PUT") return;
  options.set(CURLOPT_POSTFIELDS, request.body.data());  // not copied; the next option says how many
  options.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  options.add_header(exchange, "Content-Type: application/octet-stream");
  options.add_header(exchange, "Expect:");  // else a server that does not know 100-continue costs a second
  options.set(CURLOPT_HTTPHEADER, exchange.headers.get());
}

HttpAnswer answer_of(CURL* handle, Exchange& exchange) {
  long status = 0;
  curl()->info(handle, CURLINFO_RESPONSE_CODE, &status);
  HttpAnswer answer;
  answer.status = static_cast<int>(status);
  answer.body = std::move(exchange.body.bytes);
  return answer;
}

HttpAnswer failure_of(CURLcode code, const HttpRequest& request, const Exchange& exchange) {
  HttpAnswer answer;
  if (exchange.headers_of_answer.too_long) {
    answer.failure = "the headers of its answer are too long";
    answer.detail = fmt::format("the headers and trailers of the answer have more than {} bytes", kMaxHeaderBytes);
  } else if (exchange.body.too_long) {
    answer.failure = "its answer is too long";
    answer.detail = fmt::format("the answer has more than {} bytes", request.max_bytes);
  } else if (exchange.body.no_memory) {
    answer.no_memory = true;
    answer.failure = answer.detail = "there is no memory for its answer";
  } else if (code == CURLE_OUT_OF_MEMORY) {
    // That is also what libcurl says of a line whose end does not come.
    answer.failure = answer.detail = "a header line of its answer is too long, or libcurl has no memory";
  } else {
    answer.failure = curl()->text(code);
    // libcurl shows the URL of a proxy as it is.
    const char* const reason = exchange.reason.front() != '\0' ? exchange.reason.data() : curl()->text(code);
    answer.detail = hide_credentials(reason);
  }
  return answer;
}

HttpAnswer not_sent(const std::string& failure) {
  HttpAnswer answer;
  answer.failure = answer.detail = failure;
  return answer;
}

}  // namespace

HttpAnswer HttpClient::send(const HttpRequest& request) {
  const Curl& api = *curl();
  // A server that hangs up while TLS writes raises it, and libcurl is told to leave signals alone.
  const WriteSignalsBlocked blocked;
  CURL* const handle = connections_->take();
  if (handle == nullptr) return not_sent("libcurl gives no handle");
  Exchange exchange;
  exchange.url = url_.base + request.path;
  exchange.body.max = request.max_bytes;
  RequestOptions options(handle);
  set_transfer(options, times_, exchange);
  set_request(options, url_, request, exchange);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name that nobody resolves shall not hold up the end of a request. Older libraries know no such option.
  api.set(handle, CURLOPT_QUICK_EXIT, 1L);
#endif
  HttpAnswer answer;
  if (options.code() != CURLE_OK) {
    answer = not_sent(fmt::format("libcurl does not take the request: {}", api.text(options.code())));
  } else if (const CURLcode code = api.perform(handle); code == CURLE_OK) {
    answer = answer_of(handle, exchange);
  } else {
    answer = failure_of(code, request, exchange);
  }
  // The buffers end here, the handle may not.
  api.set(handle, CURLOPT_ERRORBUFFER, nullptr);
  connections_->give_back(handle);
  return answer;
}

}  // namespace hstujit
