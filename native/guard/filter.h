/* The filter of system calls: what calls.h allows, and ENOSYS for everything else. */
#ifndef PETREL_GUARD_FILTER_H
#define PETREL_GUARD_FILTER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older headers do not have these. */
#ifndef __NR_rseq
#define __NR_rseq 334
#endif
#ifndef __NR_pidfd_send_signal
#define __NR_pidfd_send_signal 424
#endif
#ifndef __NR_pidfd_open
#define __NR_pidfd_open 434
#endif
#ifndef __NR_close_range
#define __NR_close_range 436
#endif
#ifndef __NR_faccessat2
#define __NR_faccessat2 439
#endif

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define FIELD(name) ((unsigned)offsetof(struct seccomp_data, name))
#define REFUSE(error) (SECCOMP_RET_ERRNO | (unsigned)(error))

typedef struct {
  struct sock_filter code[1024];
  unsigned short length;
  unsigned for_shared_memory; /* The result for a mapping of shared memory without a file. */
} Filter;

static void add(Filter* filter, struct sock_filter step) { filter->code[filter->length++] = step; }

static void give(Filter* filter, unsigned result) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

/* The next `steps` run only if the loaded value compares so with `value`. */
static void when(Filter* filter, unsigned comparison, unsigned value, unsigned char steps) {
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, steps));
}

/* Gives `result` if the loaded value compares so. */
static void give_when(Filter* filter, unsigned comparison, unsigned value, unsigned result) {
  when(filter, comparison, value, 1);
  give(filter, result);
}

static void load(Filter* filter, unsigned field) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field));
}

static void mask(Filter* filter, unsigned bits) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits));
}

/* The lower half: every argument that a rule looks at has 32 bits. */
static void load_argument(Filter* filter, unsigned index) {
  load(filter, FIELD(args) + index * sizeof(unsigned long long));
}

/* ---- rules: each ends with a result. A refusal is answered as by a kernel that does not know the form. ---- */

static void allow_values(Filter* filter, unsigned argument, const unsigned* values, size_t count, int error) {
  load_argument(filter, argument);
  for (size_t i = 0; i < count; i++) give_when(filter, BPF_JEQ, values[i], SECCOMP_RET_ALLOW);
  give(filter, REFUSE(error));
}

/*
 * Shared memory without a file can stay allocated while no process maps it, and so escapes the watch. It is counted by
 * its size when it is made. Huge pages come from a store of the whole machine and are not resident pages.
 */
static void mmap_forms(Filter* filter) {
  load_argument(filter, 3);
  give_when(filter, BPF_JSET, MAP_HUGETLB, REFUSE(EINVAL));
  mask(filter, MAP_SHARED | MAP_ANONYMOUS);
  give_when(filter, BPF_JEQ, MAP_SHARED | MAP_ANONYMOUS, filter->for_shared_memory);
  give(filter, SECCOMP_RET_ALLOW);
}

static void ioctl_forms(Filter* filter) {
  static const unsigned kRequests[] = {FIONREAD, FIONBIO, FIOCLEX, FIONCLEX};
  allow_values(filter, 1, kRequests, COUNT(kRequests), ENOTTY);
}

static void madvise_forms(Filter* filter) {
  static const unsigned kAdvice[] = {
      MADV_NORMAL,
      MADV_RANDOM,
      MADV_SEQUENTIAL,
      MADV_WILLNEED,
      MADV_DONTNEED,
      MADV_FREE,
      MADV_REMOVE,
      MADV_DONTFORK,
      MADV_DOFORK,
      MADV_HUGEPAGE,
      MADV_NOHUGEPAGE,
      MADV_DONTDUMP,
      MADV_DODUMP,
      MADV_WIPEONFORK,
      MADV_KEEPONFORK,
      20 /* COLD */,
      21 /* PAGEOUT */,
      22 /* POPULATE_READ */,
      23 /* POPULATE_WRITE */,
  };
  allow_values(filter, 2, kAdvice, COUNT(kAdvice), EINVAL);
}

/* AF_VSOCK would reach the host of a virtual machine: a network namespace does not cover it. */
static void unix_only(Filter* filter) {
  static const unsigned kFamilies[] = {AF_UNIX};
  allow_values(filter, 0, kFamilies, COUNT(kFamilies), EAFNOSUPPORT);
}

static void setsockopt_forms(Filter* filter) {
  static const unsigned kOptions[] = {SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO};
  load_argument(filter, 1);
  when(filter, BPF_JEQ, SOL_SOCKET, 2 + 2 * COUNT(kOptions));
  allow_values(filter, 2, kOptions, COUNT(kOptions), ENOPROTOOPT);
  give(filter, REFUSE(ENOPROTOOPT));
}

/*
 * A new user namespace would give capabilities back. Open files are shared by the threads of a process and by nobody
 * else: the watch sees the files, and who holds locks, by process.
 */
static void clone_forms(Filter* filter) {
  load_argument(filter, 0);
  give_when(filter, BPF_JSET,
            CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET,
            REFUSE(EINVAL));
  mask(filter, CLONE_THREAD | CLONE_FILES);
  give_when(filter, BPF_JEQ, 0, SECCOMP_RET_ALLOW);
  give_when(filter, BPF_JEQ, CLONE_THREAD | CLONE_FILES, SECCOMP_RET_ALLOW);
  give(filter, REFUSE(EINVAL));
}

/* Locks of open files (F_OFD_SETLK) have no process to which they could be counted. */
static void fcntl_forms(Filter* filter) {
  static const unsigned kCommands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,  F_GETFL,
                                       F_SETFL, F_GETLK,         F_SETLK, F_SETLKW, F_GETPIPE_SZ};
  allow_values(filter, 1, kCommands, COUNT(kCommands), EINVAL);
}

/* Not PR_SET_DUMPABLE: it would hide the open files and the mappings from the watch. */
static void prctl_forms(Filter* filter) {
  static const unsigned kOptions[] = {PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE,     PR_SET_NAME,
                                      PR_GET_NAME,      PR_CAPBSET_READ,  PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS,
                                      PR_GET_SECCOMP,   PR_GET_TIMERSLACK};
  allow_values(filter, 0, kOptions, COUNT(kOptions), EINVAL);
}

static void arch_prctl_forms(Filter* filter) {
  static const unsigned kOptions[] = {
      0x1002 /* ARCH_SET_FS */,
      0x1003 /* ARCH_GET_FS */,
      0x1021 /* ARCH_GET_XCOMP_SUPP */,
      0x1022 /* ARCH_GET_XCOMP_PERM */,
      0x1023 /* ARCH_REQ_XCOMP_PERM: AMX */,
  };
  allow_values(filter, 0, kOptions, COUNT(kOptions), EINVAL);
}

/* As an ordinary user the guard has the program's user number, so the kernel would let the program change it. */
static void own_priority(Filter* filter) {
  load_argument(filter, 0);
  when(filter, BPF_JEQ, PRIO_PROCESS, 4);
  load_argument(filter, 1);
  give_when(filter, BPF_JEQ, 0, SECCOMP_RET_ALLOW);
  give(filter, REFUSE(EPERM));
  give(filter, REFUSE(EPERM));
}

static void own_affinity(Filter* filter) { allow_values(filter, 0, (const unsigned[]){0}, 1, EPERM); }

static void own_limits(Filter* filter) { allow_values(filter, 0, (const unsigned[]){0}, 1, EPERM); }

static void close_range_forms(Filter* filter) {
  static const unsigned kFlags[] = {0, 4 /* CLOSE_RANGE_CLOEXEC */};
  allow_values(filter, 2, kFlags, COUNT(kFlags), EINVAL);
}

/* ---- the whole filter ---- */

static void answer(Filter* filter, unsigned number, unsigned result) { give_when(filter, BPF_JEQ, number, result); }

static void answer_by(Filter* filter, unsigned number, void (*rule)(Filter*)) {
  Filter steps = {.length = 0, .for_shared_memory = filter->for_shared_memory};
  rule(&steps);
  when(filter, BPF_JEQ, number, (unsigned char)steps.length);
  for (unsigned short i = 0; i < steps.length; i++) add(filter, steps.code[i]);
}

/* Calls of 32-bit programs and of x32 have numbers of their own. */
static void build_filter(Filter* filter) {
  load(filter, FIELD(arch));
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  give(filter, REFUSE(ENOSYS));
  load(filter, FIELD(nr));
#define NAMED(number, name) _Static_assert(number == __NR_##name, "the number of " #name);
#define CALL(number, name, why) NAMED(number, name) answer(filter, number, SECCOMP_RET_ALLOW);
#define FORMS(number, name, rule, why) NAMED(number, name) answer_by(filter, number, rule);
#define ANSWER(number, name, error, why) NAMED(number, name) answer(filter, number, REFUSE(error));
#include "calls.h"
#undef NAMED
#undef CALL
#undef FORMS
#undef ANSWER
  give(filter, REFUSE(ENOSYS));
}

/* Puts the filter around this process. `result`: for shared memory without a file. Returns the listener, 0, or -1. */
static int filter_calls(unsigned result, unsigned flags) {
  static Filter filter;
  filter = (Filter){.for_shared_memory = result};
  build_filter(&filter);
  const struct sock_fprog program = {.len = filter.length, .filter = filter.code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

#endif
