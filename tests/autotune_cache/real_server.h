// Servers that people run, started by a test on a free port with a configuration in a temporary folder, and ended with
// the object. As root or not.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/support/files.h"

namespace hstujit {

class RealServer {
 public:
  // Null when the program is not installed. `why` says so, or what the program said when it did not start.
  // `settings`: lines of nginx's location, or of Apache's directory.
  static std::unique_ptr<RealServer> nginx(const std::string& settings, std::string* why);
  static std::unique_ptr<RealServer> apache(const std::string& settings, std::string* why);
  ~RealServer();

  // "http://127.0.0.1:<port>/cache"; `credentials` are "user:password@" or nothing.
  std::string url(const std::string& credentials = "") const;
  // The folder that it serves under its URL.
  std::filesystem::path folder() const { return temporary_.path() / "www" / "cache"; }
  std::filesystem::path passwords() const { return temporary_.path() / "passwords"; }

 private:
  explicit RealServer(TempDir temporary) : temporary_(std::move(temporary)) {}
  using Start = std::unique_ptr<RealServer> (*)(const std::string& settings, std::string* why);
  static std::unique_ptr<RealServer> repeated(Start start, const std::string& settings, std::string* why);
  static std::unique_ptr<RealServer> start_nginx(const std::string& settings, std::string* why);
  static std::unique_ptr<RealServer> start_apache(const std::string& settings, std::string* why);
  static std::unique_ptr<RealServer> prepare(const char* program, std::string* why);
  bool start(const std::vector<std::string>& command, std::string* why);

  TempDir temporary_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace hstujit
