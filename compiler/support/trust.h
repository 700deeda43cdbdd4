// Whether a file or a folder can hold only what this user, or root, has put there.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace hstujit {

enum class Trust {
  kOwn,  // what belongs to root or to the user of this process, and what not just anybody may write
  kAll,  // whatever is there
};

// Why what has these attributes is not to be trusted: it belongs to somebody who is neither root nor the effective user
// of this process, or anybody may write it, and what helps. Empty when it is; so it is where a group may write.
std::string distrust(const struct stat& info);

// Why the place of `path` is not to be trusted: anybody may put something else there, since everybody may write a
// folder on the way and the folder has no sticky bit, or a link on the way is another user's. Looks at every folder and
// link that opening the path goes through; those that are still to be made are this user's own. Empty when there is
// none.
std::string distrust_of_place(const std::filesystem::path& path);

// Whether a sentence is one of these, or ends in one.
bool says_distrust(std::string_view sentence);

// Such a sentence without what helps, for a report that says that itself; any other as it is.
std::string_view without_remedy(std::string_view sentence);

}  // namespace hstujit
