#pragma once
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

/// The outputs that the documentation shows: tests compare what the library prints with them.
namespace docs_test {

/// The lines between [doc:region] and [/doc:region] of a file in the golden folder, each with its newline.
inline std::string golden(const std::string& file, const std::string& region) {
  std::ifstream stream(std::filesystem::path(SCANDSL_GOLDEN) / file);
  std::string text, line;
  bool inside = false, found = false;
  while (std::getline(stream, line)) {
    if (line.find("[/doc:" + region + "]") != std::string::npos) inside = false;
    if (inside) text += line + "\n";
    if (line.find("[doc:" + region + "]") != std::string::npos) inside = found = true;
  }
  if (!found) throw std::runtime_error("no region " + region + " in " + file);
  return text;
}

}  // namespace docs_test
