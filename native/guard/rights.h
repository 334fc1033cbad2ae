/* The rights of the program: its user and its limits. */
#ifndef PETREL_GUARD_RIGHTS_H
#define PETREL_GUARD_RIGHTS_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kCannotStart = 127, kCannotGuard = 126, kEnded = 128 + SIGKILL };

/* What an ordinary kernel queues for one program. Signals below SIGRTMIN arrive all the same. */
enum { kPendingSignals = 256 };

typedef struct {
  long report, uid, wall_ms, cpu_ms, memory_kib, tasks, file_kib, files;
} Orders;

static void fail(const char* what) {
  fprintf(stderr, "petrel-guard: %s: %s\n", what, strerror(errno));
  _exit(kCannotGuard);
}

static void write_file(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) fail(path);
  close(file);
}

/* Becomes a user that owns nothing outside, in a user namespace of its own. */
static void become(long uid) {
  char map[64];
  if (setgroups(0, NULL) != 0 || setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) != 0 ||
      setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0)
    fail("setuid");
  prctl(PR_SET_DUMPABLE, 1); /* A change of the user clears it, and then the maps below belong to root. */
  if (unshare(CLONE_NEWUSER) != 0) fail("a new user namespace");
  write_file("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "1000 %ld 1\n", uid);
  write_file("/proc/self/uid_map", map);
  write_file("/proc/self/gid_map", map);
}

/* Gives the user namespace of its parent two users: root, and the one that a program will have. */
static void map_users(int go, const char* uid) {
  char path[64], map[64], byte;
  const pid_t parent = getppid();
  if (read(go, &byte, 1) != 1) _exit(0); /* The parent has failed, and says why. */
  snprintf(map, sizeof map, "0 0 1\n%.20s %.20s 1\n", uid, uid);
  snprintf(path, sizeof path, "/proc/%d/uid_map", (int)parent);
  write_file(path, map);
  snprintf(path, sizeof path, "/proc/%d/gid_map", (int)parent);
  write_file(path, map);
  _exit(0);
}

/*
 * Root without CAP_SYS_ADMIN (in a container) cannot build mounts, but the root of a user namespace can. Only a process
 * outside of the namespace may give it a user besides root.
 */
static void enter_namespace(const char* uid) {
  int go[2], status;
  if (pipe(go) != 0) fail("pipe");
  const pid_t mapper = fork();
  if (mapper < 0) fail("fork");
  if (mapper == 0) {
    close(go[1]);
    map_users(go[0], uid);
  }
  close(go[0]);
  if (unshare(CLONE_NEWUSER) != 0) fail("a new user namespace");
  if (write(go[1], "", 1) != 1) fail("pipe");
  close(go[1]);
  if (waitpid(mapper, &status, 0) != mapper || status != 0) _exit(kCannotGuard); /* It has said why. */
}

static void limit(int what, long soft, long hard) {
  const struct rlimit both = {(rlim_t)soft, (rlim_t)hard};
  if (setrlimit((__rlimit_resource_t)what, &both) != 0) fail("setrlimit");
}

static int kernel_has(int major, int minor) {
  struct utsname kernel;
  int have_major, have_minor;
  return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &have_major, &have_minor) == 2 &&
         (have_major > major || (have_major == major && have_minor >= minor));
}

/* Before Linux 5.14 a user's processes outside of the sandbox count, too. The user given as `uid` has none. */
static int counts_only_these(const Orders* orders) { return orders->uid > 0 || kernel_has(5, 14); }

static void limit_one_process(const Orders* orders) {
  limit(RLIMIT_CORE, 1, 1); /* With 0 the kernel would still start the machine's program for cores. */
  limit(RLIMIT_MEMLOCK, 65536, 65536);
  limit(RLIMIT_MSGQUEUE, 0, 0);
  limit(RLIMIT_SIGPENDING, kPendingSignals, kPendingSignals);
  /* The watch is exact; these end or refuse earlier what they can. Two more tasks: this guard, and the one too many. */
  if (orders->tasks > 0 && counts_only_these(orders)) limit(RLIMIT_NPROC, orders->tasks + 2, orders->tasks + 2);
  if (orders->memory_kib > 0) limit(RLIMIT_DATA, orders->memory_kib * 1024, orders->memory_kib * 1024);
  if (orders->cpu_ms > 0) limit(RLIMIT_CPU, orders->cpu_ms / 1000 + 1, orders->cpu_ms / 1000 + 2);
  if (orders->file_kib > 0) limit(RLIMIT_FSIZE, orders->file_kib * 1024, orders->file_kib * 1024);
  if (orders->files > 0) limit(RLIMIT_NOFILE, orders->files, orders->files);
}

#endif
