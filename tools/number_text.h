// SPDX-License-Identifier: Apache-2.0
// Numbers as tables and JSON documents show them.
#ifndef ONNXTRAIN_TOOLS_NUMBER_TEXT_H_
#define ONNXTRAIN_TOOLS_NUMBER_TEXT_H_

#include <cmath>
#include <cstdio>
#include <string>

namespace onnxtrain {

// Six significant digits.
inline std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

// A number, or "NaN", "Infinity", "-Infinity" as a string: JSON has no such numbers. Json is nlohmann's ordered_json.
template <typename Json>
Json NumberJson(double value) {
  if (std::isfinite(value)) return Json(value);
  return Json(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

// The document on two spaces of indent; names of models may be any bytes.
template <typename Json>
std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_NUMBER_TEXT_H_
