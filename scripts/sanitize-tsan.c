// Compiled and linked by scripts/sanitize.sh: one thing that ThreadSanitizer does not know, told to it.
//
// The last owner of a counted piece of memory (triomphe's Arc) counts down (Release), and then only orders itself behind the
// others by a fence (Acquire). The sanitizer knows no fences, and would call it a race that memory is freed which others have
// read. So counting down acquires as well. It is more than the code has where it was not the last count: a race of what two
// owners did before each let go may be missed.

#include <stdint.h>

enum { RELEASE = 3, ACQUIRE_RELEASE = 4 };

// The sanitizer's own entry for AtomicU64 and AtomicUsize, fetch_sub.
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *at, uint64_t by, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *at, uint64_t by, int order) {
    return __real___tsan_atomic64_fetch_sub(at, by, order == RELEASE ? ACQUIRE_RELEASE : order);
}
