// The addon is built once and loaded on machines with glibc 2.28 or newer. Newer versions moved some functions from
// libpthread to libc, under new versions; the linker's --wrap (CMakeLists.txt) leads every use of them here, to the old
// versions, which every glibc has.
#include <pthread.h>

extern "C" {

// Of glibc 2.32: libstdc++ takes plain instead of atomic instructions where it is not 0.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

__asm__(".symver old_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver old_join, pthread_join@GLIBC_2.2.5");
__asm__(".symver old_once, pthread_once@GLIBC_2.2.5");
__asm__(".symver old_key_create, __pthread_key_create@GLIBC_2.2.5");

int old_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int old_join(pthread_t, void**);
int old_once(pthread_once_t*, void (*)());
int old_key_create(pthread_key_t*, void (*)(void*));

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return old_create(thread, attributes, run, argument);
}
int __wrap_pthread_join(pthread_t thread, void** result) { return old_join(thread, result); }
int __wrap_pthread_once(pthread_once_t* once, void (*run)()) { return old_once(once, run); }
int __wrap___pthread_key_create(pthread_key_t* key, void (*end)(void*)) { return old_key_create(key, end); }
}
