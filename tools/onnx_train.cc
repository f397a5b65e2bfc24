// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "tools/command.h"

int main(int argc, char** argv) { return onnxtrain::RunOnnxTrain(std::vector<std::string>(argv + 1, argv + argc)); }
