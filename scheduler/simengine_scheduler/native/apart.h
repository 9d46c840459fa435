// Whether emitters are apart: whether, among some calls, none of one emitter conflicts with one of another.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "issuer.h"

namespace issue {

class Apart {
  public:
    // Whether no calls of different emitters conflict, given the emitter of each call.
    bool are_apart(const Issuer& issuer, const int32_t* numbers, const int32_t* emitters, int64_t count) {
        if (std::all_of(emitters, emitters + count, [&](int32_t each) { return each == emitters[0]; })) return true;
        ++batch_;
        touched_.resize(issuer.hazards.segments());
        for (int64_t i = 0; i < count; ++i)
            issuer.hazards.each_segment(
                issuer.calls[numbers[i]].combination,
                [&](int32_t segment) { mark(segment, emitters[i], &Touched::reader); },
                [&](int32_t segment) { mark(segment, emitters[i], &Touched::writer); });
        bool apart = true;
        for (int64_t i = 0; apart && i < count; ++i)
            issuer.hazards.each_conflict(
                issuer.calls[numbers[i]].combination,
                [&](int32_t segment) { apart &= !by_another(segment, emitters[i], &Touched::writer); },
                [&](int32_t segment) {
                    apart &= !by_another(segment, emitters[i], &Touched::writer) &&
                             !by_another(segment, emitters[i], &Touched::reader);
                });
        return apart;
    }

  private:
    static constexpr int32_t NOBODY = -1, SEVERAL = -2;

    // Which emitters read and write a segment in a batch.
    struct Touched {
        int64_t batch = 0;
        int32_t reader = NOBODY, writer = NOBODY;
    };

    void mark(int32_t segment, int32_t emitter, int32_t Touched::*who) {
        Touched& own = touched_[segment];
        if (own.batch != batch_) own = {batch_, NOBODY, NOBODY};
        own.*who = own.*who == NOBODY || own.*who == emitter ? emitter : SEVERAL;
    }

    bool by_another(int32_t segment, int32_t emitter, int32_t Touched::*who) const {
        const Touched& own = touched_[segment];
        return own.batch == batch_ && own.*who != NOBODY && own.*who != emitter;
    }

    std::vector<Touched> touched_;  // by segment
    int64_t batch_ = 0;             // the present one
};

}  // namespace issue
