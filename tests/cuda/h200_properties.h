// SPDX-License-Identifier: Apache-2.0
// What cuDNN asks of an H200 (SXM, 141 GB), written by hand from NVIDIA's published figures; tools/gpu_check writes the
// library's own words on a machine that has one.
#ifndef ONNXTRAIN_TESTS_CUDA_H200_PROPERTIES_H_
#define ONNXTRAIN_TESTS_CUDA_H200_PROPERTIES_H_

namespace onnxtrain {

inline constexpr const char* kH200Properties =
    R"({"deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
        "multiProcessorCount": 132, "warpSize": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
        "maxCtasPerSM": 32, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "l2CacheSize": 62914560,
        "totalGlobalMem": 150754820096, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "isTccDriver": 0,
        "supportCoopLaunch": 1})";

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CUDA_H200_PROPERTIES_H_
