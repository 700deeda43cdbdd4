// Where the tuning records that come with the library are: installed with it, and nowhere in a build tree.
#pragma once

#include <string>

namespace hstujit {

// From the folder of libhstujit.so to that of the records, as it is installed: "../share/hstujit/records".
extern const char kRecordsFromLibrary[];

// The folder of the records of a library in `library_folder`; "" when there is none, which is no mistake.
std::string shipped_records(const std::string& library_folder);

// The same for the library, or the program, that contains this function.
std::string shipped_records();

}  // namespace hstujit
