// What the issuer calls: functions of the CUDA driver, and calls as they take them.
#pragma once
#include <cstdint>

namespace issue {

// Functions of the CUDA driver, or of another library with the same signatures. Each returns 0, or an error.
struct Driver {
    int (*launch)(int64_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, int64_t stream, int64_t arguments, int64_t extra);
    int (*record)(int64_t event, int64_t stream);
    int (*wait)(int64_t stream, int64_t event, unsigned flags);
    int (*query)(int64_t event);
    int (*launch_graph)(int64_t graph, int64_t stream) = nullptr;
    int (*get_context)(int64_t* context) = nullptr;  // of the calling thread; null: there are none
    int (*set_context)(int64_t context) = nullptr;
};

constexpr int NOT_READY = 600;  // what a query returns while work goes on

// A call as the driver takes it, or a graph. One without either is launched by whoever uses the issuer.
struct Call {
    int64_t graph = 0;
    int32_t last = -1;  // of a graph: the number of its last call
    int64_t function = 0;
    unsigned size[7] = {};  // grid, block, shared memory
    int64_t arguments = 0;
    int32_t combination = 0;
};

}  // namespace issue
