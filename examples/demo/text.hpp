#pragma once
#include <algorithm>
#include <cstdio>
#include <string>

namespace demo {

inline void heading(const std::string& text) {
  std::printf("\n%s\n%s\n\n", text.c_str(), std::string(text.size(), '=').c_str());
}

/// Prints a text of several lines, indented.
inline void print_block(const std::string& text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::printf("    %s\n", text.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
  std::printf("\n");
}

}  // namespace demo
