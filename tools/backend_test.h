// SPDX-License-Identifier: Apache-2.0
// ONNX backend test folders: model.onnx beside test_data_set_*/input_N.pb and output_N.pb. Each is specialised to its
// data and run node by node.
#ifndef ONNXTRAIN_TOOLS_BACKEND_TEST_H_
#define ONNXTRAIN_TOOLS_BACKEND_TEST_H_

#include <string>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

enum class TestOutcome : uint8_t { kPassed, kFailed, kSkipped };

struct TestResult {
  std::string folder;
  TestOutcome outcome = TestOutcome::kPassed;
  std::string reason;  // of a failure or a skip
  std::string op;      // of a skip: the operator that is not implemented
};

// Every test folder at or below `folder`, sorted by name. Usage when there is none.
StatusOr<std::vector<std::string>> FindTestFolders(const std::string& folder);

// Skipped is what this build does not implement; everything else that goes wrong is failed. Inputs that shapes depend
// on become constants. An output passes where |found - expected| <= 1e-7 + 1e-3 |expected|, NaN equal to NaN. Outputs
// in 16 bits get two units in the last place in place of 1e-3: the suite's own bound would ask for equal bits.
TestResult RunTestFolder(const std::string& folder, int threads);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_BACKEND_TEST_H_
