#include "tests/autotune_cache/real_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/autotune_cache/http_server.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNginx = "/usr/sbin/nginx";
constexpr const char* kApache = "/usr/sbin/apache2";
constexpr const char* kApacheModules = "/usr/lib/apache2/modules";
constexpr std::chrono::seconds kStartTime{60};
constexpr int kAttempts = 4;  // somebody may take the port that was free a moment ago

bool is_root() { return ::geteuid() == 0; }

bool answers(int port) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool connected = ::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  ::close(connection);
  return connected;
}

// {} would be fmt's; the configurations have braces of their own.
std::string filled(std::string text, const std::string& name, const std::string& value) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
  return text;
}

constexpr const char* kNginxConfig = R"(
daemon off;
USER
worker_processes 2;
pid ROOT/pid;
error_log ROOT/log;
events {}
http {
  access_log off;
  client_body_temp_path ROOT/body;
  proxy_temp_path ROOT/proxy;
  fastcgi_temp_path ROOT/fastcgi;
  uwsgi_temp_path ROOT/uwsgi;
  scgi_temp_path ROOT/scgi;
  client_max_body_size 256m;
  server {
    listen 127.0.0.1:PORT;
    location /cache/ {
      root ROOT/www;
      SETTINGS
    }
  }
}
)";

constexpr const char* kApacheConfig = R"(
ServerRoot ROOT
ServerName localhost
PidFile ROOT/pid
ErrorLog ROOT/log
Listen 127.0.0.1:PORT
LoadModule mpm_event_module MODULES/mod_mpm_event.so
LoadModule authz_core_module MODULES/mod_authz_core.so
LoadModule dav_module MODULES/mod_dav.so
LoadModule dav_fs_module MODULES/mod_dav_fs.so
USER
DavLockDB ROOT/locks
DocumentRoot ROOT/www
<Directory ROOT/www>
  Dav On
  SETTINGS
</Directory>
)";

}  // namespace

std::unique_ptr<RealServer> RealServer::prepare(const char* program, std::string* why) {
  if (::access(program, X_OK) != 0) {
    *why = fmt::format("{} is not installed; tools/install-deps.sh does that", program);
    return nullptr;
  }
  auto temporary = TempDir::create();
  if (!temporary.ok()) {
    *why = temporary.status().message();
    return nullptr;
  }
  std::unique_ptr<RealServer> server(new RealServer(std::move(temporary).value()));
  fs::create_directories(server->folder());
  server->port_ = BoundPort().number();  // free from here on: a start that another took it from is repeated
  return server;
}

std::unique_ptr<RealServer> RealServer::repeated(Start start, const std::string& settings, std::string* why) {
  std::unique_ptr<RealServer> server;
  for (int i = 0; i < kAttempts && !server; ++i) server = start(settings, why);
  return server;
}

std::unique_ptr<RealServer> RealServer::nginx(const std::string& settings, std::string* why) {
  return repeated(&start_nginx, settings, why);
}

std::unique_ptr<RealServer> RealServer::apache(const std::string& settings, std::string* why) {
  return repeated(&start_apache, settings, why);
}

std::unique_ptr<RealServer> RealServer::start_nginx(const std::string& settings, std::string* why) {
  std::unique_ptr<RealServer> server = prepare(kNginx, why);
  if (!server) return nullptr;
  const fs::path root = server->temporary_.path();
  std::string text = filled(kNginxConfig, "SETTINGS", settings);
  text = filled(text, "USER", is_root() ? "user root;" : "");
  text = filled(text, "ROOT", root);
  text = filled(text, "PORT", fmt::format("{}", server->port_));
  if (!write_file_atomically(root / "config", text).ok()) return nullptr;
  if (!server->start({kNginx, "-e", root / "log", "-p", root, "-c", root / "config"}, why)) return nullptr;
  return server;
}

std::unique_ptr<RealServer> RealServer::start_apache(const std::string& settings, std::string* why) {
  std::unique_ptr<RealServer> server = prepare(kApache, why);
  if (!server) return nullptr;
  const fs::path root = server->temporary_.path();
  std::string text = filled(kApacheConfig, "SETTINGS", settings);
  // Its children never run as root.
  text = filled(text, "USER", is_root() ? "User nobody\nGroup nogroup" : "");
  text = filled(text, "ROOT", root);
  text = filled(text, "MODULES", kApacheModules);
  text = filled(text, "PORT", fmt::format("{}", server->port_));
  if (!write_file_atomically(root / "config", text).ok()) return nullptr;
  if (const passwd* nobody = is_root() ? ::getpwnam("nobody") : nullptr) {
    for (const fs::path& folder : {root, root / "www", root / "www" / "cache"}) {
      if (::chown(folder.c_str(), nobody->pw_uid, nobody->pw_gid) != 0) return nullptr;
    }
  }
  if (!server->start({kApache, "-d", root, "-f", root / "config", "-DFOREGROUND"}, why)) return nullptr;
  return server;
}

bool RealServer::start(const std::vector<std::string>& command, std::string* why) {
  const fs::path log = temporary_.path() / "output";
  process_ = ::fork();
  if (process_ == 0) {
    const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  const auto end = std::chrono::steady_clock::now() + kStartTime;
  // Both write their identity once they listen: what answers before that is somebody else's.
  while (!fs::exists(temporary_.path() / "pid") || !answers(port_)) {
    const bool ended = ::waitpid(process_, nullptr, WNOHANG) == process_;
    if (ended) process_ = -1;
    if (ended || std::chrono::steady_clock::now() > end) {
      *why = fmt::format("{} did not start: {}{}", command[0], whole_file(log).ok() ? *whole_file(log) : "",
                         whole_file(temporary_.path() / "log").ok() ? *whole_file(temporary_.path() / "log") : "");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

RealServer::~RealServer() {
  if (process_ <= 0) return;
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

std::string RealServer::url(const std::string& credentials) const {
  return fmt::format("http://{}127.0.0.1:{}/cache", credentials, port_);
}

}  // namespace hstujit
