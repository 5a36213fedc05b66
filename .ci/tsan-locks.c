// What ThreadSanitizer does not see of Rust's standard library, told to it. The library comes compiled without the
// sanitizer: code of it that is generic or inlined is compiled with ours and seen, the slow paths of its locks are not.
//
//   lock()     free: inlined, seen                   contended: in the library    -> acquire behind it
//   wait()     unlocks, sleeps, locks: in the library                             -> release before, acquire behind it
//   scope()    a thread's end: in the library        its owner's look: seen       -> release before it
//   Arc        counts down (Release), then a fence (Acquire), which the sanitizer does not know -> one step (AcqRel)
//
// Invariant: an edge is added where the library has one, and nowhere else; but for Arc, where counting down also
// acquires when it was not the last one. So a race of what two owners did before each let go may be missed.
//
// .ci/tsan finds the library's names for these functions, and has the linker lead calls of them here.

#include <stdbool.h>
#include <stdint.h>

#define JOIN_EXPANDED(left, right) left##right
#define JOIN(left, right) JOIN_EXPANDED(left, right)
#define WRAPPED(name) JOIN(__wrap_, name)
#define REAL(name) JOIN(__real_, name)

void __tsan_acquire(void *address);
void __tsan_release(void *address);

// Mutex::lock_contended(&self): the mutex is one word, which the sanitizer sees inlined code lock and unlock.
void REAL(MUTEX_LOCK_CONTENDED)(void *mutex);
void WRAPPED(MUTEX_LOCK_CONTENDED)(void *mutex) {
    REAL(MUTEX_LOCK_CONTENDED)(mutex);
    __tsan_acquire(mutex);
}

// Condvar::wait(&self, &Mutex)
void REAL(CONDVAR_WAIT)(void *condvar, void *mutex);
void WRAPPED(CONDVAR_WAIT)(void *condvar, void *mutex) {
    __tsan_release(mutex);
    REAL(CONDVAR_WAIT)(condvar, mutex);
    __tsan_acquire(mutex);
}

// Condvar::wait_timeout(&self, &Mutex, Duration) -> bool
bool REAL(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds);
bool WRAPPED(CONDVAR_WAIT_TIMEOUT)(void *condvar, void *mutex, uint64_t seconds, uint32_t nanoseconds) {
    __tsan_release(mutex);
    bool was_woken = REAL(CONDVAR_WAIT_TIMEOUT)(condvar, mutex, seconds, nanoseconds);
    __tsan_acquire(mutex);
    return was_woken;
}

// ScopeData::decrement_num_running_threads(&self, bool): a count, a flag and a handle, in an order that is not
// promised. The owner loads the count: so every word is released.
void REAL(SCOPE_THREAD_ENDS)(void *scope, bool panicked);
void WRAPPED(SCOPE_THREAD_ENDS)(void *scope, bool panicked) {
    for (int word = 0; word < 3; word++) {
        __tsan_release((uint64_t *)scope + word);
    }
    REAL(SCOPE_THREAD_ENDS)(scope, panicked);
}

// The sanitizer's own entry for AtomicU64 and AtomicUsize, fetch_sub.
enum { RELEASE = 3, ACQUIRE_RELEASE = 4 };
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *at, uint64_t by, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *at, uint64_t by, int order) {
    return __real___tsan_atomic64_fetch_sub(at, by, order == RELEASE ? ACQUIRE_RELEASE : order);
}
