/*
 * petrel-guard <name>=<number>... -- <program> <argument>...
 *
 * The first process of a sandbox that bubblewrap has built (rewards/sandbox): process 1 of its process namespace. It starts
 * the program with less rights than its own, and watches all processes of the namespace. When the program ends or a limit
 * is exceeded, it reports how, and ends. The kernel then ends every process of the namespace: nothing can leave one, and no
 * process in it can stop or end process 1.
 *
 *   report=<fd>     where the report goes: one line of <name>=<value>; without it there is none
 *   uid=<number>    the user and the group of the program, from outside; needs CAP_SETUID, CAP_SETGID and CAP_SYS_PTRACE.
 *                   Without it bubblewrap has made a user namespace of its own.
 *   wall_ms, cpu_ms, memory_kib, tasks   limits of all processes together; tasks are processes and their threads
 *   file_kib, files                      limits of one process: size of a file, open files
 * A limit that is not given does not apply.
 *
 * petrel-guard enter <file> <program> <argument>...
 * Joins the cgroup of this cgroup.procs file, then becomes the program.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kCannotStart = 127, kCannotGuard = 126, kEnded = 128 + SIGKILL };

/* How often the namespace is looked at. A process can fill about 10 MiB of memory in this time. */
enum { kFirstPauseMs = 2, kLongestPauseMs = 10 };

typedef struct {
  long report, uid, wall_ms, cpu_ms, memory_kib, tasks, file_kib, files;
} Orders;

static void fail(const char* what) {
  fprintf(stderr, "petrel-guard: %s: %s\n", what, strerror(errno));
  _exit(kCannotGuard);
}

/* ---- the rights of the program ---- */

#ifndef __NR_memfd_secret
#define __NR_memfd_secret 447
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif

/*
 * System calls that a scored program does not need. Most are kept from it because bugs were often found behind them.
 * Memory of memfd_create, shmget and msgget belongs to no process, so it would escape the watch. Keys belong to a user and
 * not to a namespace. A new user namespace would give capabilities back.
 */
static const int kRefused[] = {
    __NR_unshare,
    __NR_setns,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_mount_setattr,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_open_by_handle_at,
    __NR_quotactl,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_kexec_file_load,
    __NR_acct,
    __NR_swapon,
    __NR_reboot,
    __NR_iopl,
    __NR_ioperm,
    __NR_modify_ldt,
    __NR_syslog,
};
/* Libraries do without these when the kernel lacks them. clone3 hides its flags from a filter; clone shows them. */
static const int kMissing[] = {
    __NR_clone3,       __NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register, __NR_memfd_create,
    __NR_memfd_secret, __NR_shmget,         __NR_msgget,         __NR_mq_open,
};
static const unsigned kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
/* AF_VSOCK would reach the host of a virtual machine: a network namespace does not cover it. */
static const int kFamilies[] = {AF_UNIX, AF_INET, AF_INET6};

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define FIELD(name) ((unsigned)offsetof(struct seccomp_data, name))

typedef struct {
  struct sock_filter code[2 * (COUNT(kRefused) + COUNT(kMissing)) + 32];
  unsigned short length;
} Filter;

static void add(Filter* filter, struct sock_filter step) { filter->code[filter->length++] = step; }

static void load(Filter* filter, unsigned field) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field));
}

static void give(Filter* filter, unsigned result) {
  add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

/* The next `steps` run only if the loaded value compares so with `value`. */
static void when(Filter* filter, unsigned comparison, unsigned value, unsigned char steps) {
  add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | comparison | BPF_K, value, 0, steps));
}

static void filter_calls(void) {
  static Filter filter;
  load(&filter, FIELD(arch));
  add(&filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
  give(&filter, SECCOMP_RET_KILL_PROCESS);
  load(&filter, FIELD(nr));
  when(&filter, BPF_JGE, 0x40000000, 1); /* The calls of x32 have numbers of their own. */
  give(&filter, SECCOMP_RET_ERRNO | ENOSYS);
  for (size_t i = 0; i < COUNT(kRefused); i++) {
    when(&filter, BPF_JEQ, (unsigned)kRefused[i], 1);
    give(&filter, SECCOMP_RET_ERRNO | EPERM);
  }
  for (size_t i = 0; i < COUNT(kMissing); i++) {
    when(&filter, BPF_JEQ, (unsigned)kMissing[i], 1);
    give(&filter, SECCOMP_RET_ERRNO | ENOSYS);
  }
  when(&filter, BPF_JEQ, __NR_clone, 4);
  load(&filter, FIELD(args[0]));
  when(&filter, BPF_JSET, kNamespaces, 1);
  give(&filter, SECCOMP_RET_ERRNO | EPERM);
  give(&filter, SECCOMP_RET_ALLOW);
  when(&filter, BPF_JEQ, __NR_socket, 2 + 2 * COUNT(kFamilies));
  load(&filter, FIELD(args[0]));
  for (size_t i = 0; i < COUNT(kFamilies); i++) {
    when(&filter, BPF_JEQ, (unsigned)kFamilies[i], 1);
    give(&filter, SECCOMP_RET_ALLOW);
  }
  give(&filter, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  give(&filter, SECCOMP_RET_ALLOW);
  const struct sock_fprog program = {.len = filter.length, .filter = filter.code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("the filter of system calls");
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

static void limit(int what, long soft, long hard) {
  const struct rlimit both = {(rlim_t)soft, (rlim_t)hard};
  if (setrlimit((__rlimit_resource_t)what, &both) != 0) fail("setrlimit");
}

/* Before Linux 5.14 a user's processes outside of the sandbox count, too. The user given as `uid` has none. */
static int counts_only_these(const Orders* orders) {
  struct utsname kernel;
  int major, minor;
  if (orders->uid > 0) return 1;
  return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 14));
}

static void limit_one_process(const Orders* orders) {
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_MEMLOCK, 65536, 65536);
  limit(RLIMIT_MSGQUEUE, 0, 0);
  /* The watch is exact; these end or refuse earlier what they can. Two more tasks: this guard, and the one too many. */
  if (orders->tasks > 0 && counts_only_these(orders)) limit(RLIMIT_NPROC, orders->tasks + 2, orders->tasks + 2);
  if (orders->memory_kib > 0) limit(RLIMIT_DATA, orders->memory_kib * 1024, orders->memory_kib * 1024);
  if (orders->cpu_ms > 0) limit(RLIMIT_CPU, orders->cpu_ms / 1000 + 1, orders->cpu_ms / 1000 + 2);
  if (orders->file_kib > 0) limit(RLIMIT_FSIZE, orders->file_kib * 1024, orders->file_kib * 1024);
  if (orders->files > 0) limit(RLIMIT_NOFILE, orders->files, orders->files);
}

static void run_program(const Orders* orders, char** command) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_DUMPABLE, 1);
  write_file("/proc/self/oom_score_adj", "1000");
  for (int fd = 3; fd < 1024; fd++) close(fd);
  if (orders->uid > 0) become(orders->uid);
  limit_one_process(orders);
  filter_calls();
  execvp(command[0], command);
  fprintf(stderr, "%s cannot be started: %s\n", command[0], strerror(errno));
  _exit(kCannotStart);
}

/* ---- the watch ---- */

typedef struct {
  long tasks, kib, cpu_ms;
} Usage;

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t read_file(int folder, const char* path, char* text, size_t room) {
  const int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, room - 1);
  close(file);
  text[got < 0 ? 0 : got] = 0;
  return got < 0 ? 0 : (size_t)got;
}

static long proportional_kib(int proc, const char* pid, long resident_kib) {
  char path[300], text[1024];
  long kib;
  snprintf(path, sizeof path, "%s/smaps_rollup", pid);
  if (read_file(proc, path, text, sizeof text) == 0) return resident_kib;
  const char* line = strstr(text, "\nPss:");
  return line != NULL && sscanf(line, "\nPss: %ld", &kib) == 1 ? kib : resident_kib;
}

static void add_process(Usage* all, int proc, const char* pid, int exactly) {
  char path[300], text[1024];
  snprintf(path, sizeof path, "%s/stat", pid);
  if (read_file(proc, path, text, sizeof text) == 0) return; /* It has ended. */
  const char* fields = strrchr(text, ')');                   /* The name before it may contain anything. */
  long cpu[4], threads, pages;
  if (fields == NULL ||
      sscanf(fields + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %ld %ld %ld %*s %*s %ld %*s %*s %*s %ld",
             &cpu[0], &cpu[1], &cpu[2], &cpu[3], &threads, &pages) != 6)
    return;
  const long kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
  all->tasks += threads > 0 ? threads : 1;
  all->cpu_ms += (cpu[0] + cpu[1] + cpu[2] + cpu[3]) * 1000 / sysconf(_SC_CLK_TCK);
  all->kib += exactly && kib > 0 ? proportional_kib(proc, pid, kib) : kib;
}

/* Files of these file systems are memory. */
static long kib_of_files(void) {
  static const char* const kPlaces[] = {"/tmp", "/dev/shm"};
  long kib = 0;
  struct statfs place;
  for (size_t i = 0; i < COUNT(kPlaces); i++)
    if (statfs(kPlaces[i], &place) == 0) kib += (long)(place.f_blocks - place.f_bfree) * (long)place.f_bsize / 1024;
  return kib;
}

static long ended_cpu_ms(void) {
  struct rusage ended;
  getrusage(RUSAGE_CHILDREN, &ended);
  return (ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1000 +
         (ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) / 1000;
}

/*
 * All processes of the namespace but this one. Resident memory is fast to read and counts shared pages once per process;
 * `exactly`, they count by their share.
 */
static Usage look(DIR* proc, int exactly) {
  Usage all = {.kib = kib_of_files(), .cpu_ms = ended_cpu_ms()};
  rewinddir(proc);
  for (struct dirent* entry; (entry = readdir(proc)) != NULL;)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && strcmp(entry->d_name, "1") != 0)
      add_process(&all, dirfd(proc), entry->d_name, exactly);
  return all;
}

typedef struct {
  const Orders* orders;
  DIR* proc;
  long began_ms, peak_kib, most_tasks, cpu_ms;
} Watch;

/* The name of the exceeded limit, or NULL. */
static const char* exceeded(Watch* watch) {
  const Orders* most = watch->orders;
  const Usage used = look(watch->proc, 0);
  if (used.tasks > watch->most_tasks) watch->most_tasks = used.tasks;
  if (used.cpu_ms > watch->cpu_ms) watch->cpu_ms = used.cpu_ms;
  long kib = used.kib;
  if (most->memory_kib > 0 && kib > most->memory_kib) kib = look(watch->proc, 1).kib;
  if (kib > watch->peak_kib) watch->peak_kib = kib;
  if (most->tasks > 0 && used.tasks > most->tasks) return "tasks";
  if (most->memory_kib > 0 && kib > most->memory_kib) return "memory";
  if (most->cpu_ms > 0 && used.cpu_ms > most->cpu_ms) return "cpu";
  if (most->wall_ms > 0 && now_ms() - watch->began_ms >= most->wall_ms) return "wall";
  return NULL;
}

static int pause_ms(const Watch* watch) {
  const long passed = now_ms() - watch->began_ms;
  const long pause = passed < 50 ? kFirstPauseMs : kLongestPauseMs;
  const long left = watch->orders->wall_ms > 0 ? watch->orders->wall_ms - passed : pause;
  return (int)(left < 0 ? 0 : left < pause ? left : pause);
}

/* Takes every child that has ended: orphans come to process 1. Returns 1 when the program itself is among them. */
static int take_ended(pid_t program, int* status) {
  int ended = 0, one;
  for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;) {
    if (pid != program) continue;
    *status = one;
    ended = 1;
  }
  return ended;
}

static void report(const Watch* watch, const char* end, int value) {
  if (watch->orders->report <= 0) return;
  struct rusage ended;
  getrusage(RUSAGE_CHILDREN, &ended);
  const long cpu_ms = ended_cpu_ms();
  dprintf((int)watch->orders->report, "end=%s value=%d wall_ms=%ld cpu_ms=%ld peak_kib=%ld tasks=%ld\n", end, value,
          now_ms() - watch->began_ms, cpu_ms > watch->cpu_ms ? cpu_ms : watch->cpu_ms,
          ended.ru_maxrss > watch->peak_kib ? ended.ru_maxrss : watch->peak_kib, watch->most_tasks);
}

static int end_of(Watch* watch, int status) {
  if (WIFEXITED(status)) {
    report(watch, "exit", WEXITSTATUS(status));
    return WEXITSTATUS(status);
  }
  report(watch, "signal", WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

static int guard(const Orders* orders, pid_t program, int signals) {
  const int watched = orders->wall_ms > 0 || orders->cpu_ms > 0 || orders->memory_kib > 0 || orders->tasks > 0;
  Watch watch = {.orders = orders, .proc = opendir("/proc"), .began_ms = now_ms()};
  if (watch.proc == NULL) fail("/proc");
  struct pollfd source = {.fd = signals, .events = POLLIN};
  for (;;) {
    if (poll(&source, 1, watched ? pause_ms(&watch) : -1) < 0 && errno != EINTR) fail("poll");
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0) continue;
    int status;
    if (take_ended(program, &status)) return end_of(&watch, status);
    const char* limit = watched ? exceeded(&watch) : NULL;
    if (limit == NULL) continue;
    report(&watch, limit, 0);
    return kEnded;
  }
}

/* ---- the command line ---- */

static int enter(int count, char** words) {
  if (count < 4) return kCannotGuard;
  write_file(words[2], "0");
  execvp(words[3], words + 3);
  fail(words[3]);
  return kCannotGuard;
}

static int take_order(Orders* orders, const char* word) {
  const struct {
    const char* name;
    long* value;
  } known[] = {{"report=", &orders->report},     {"uid=", &orders->uid},     {"wall_ms=", &orders->wall_ms},
               {"cpu_ms=", &orders->cpu_ms},     {"tasks=", &orders->tasks}, {"memory_kib=", &orders->memory_kib},
               {"file_kib=", &orders->file_kib}, {"files=", &orders->files}};
  for (size_t i = 0; i < COUNT(known); i++) {
    const size_t length = strlen(known[i].name);
    if (strncmp(word, known[i].name, length) != 0) continue;
    char* end;
    *known[i].value = strtol(word + length, &end, 10);
    return end != word + length && *end == 0;
  }
  return 0;
}

int main(int count, char** words) {
  if (count > 1 && strcmp(words[1], "enter") == 0) return enter(count, words);
  Orders orders = {0};
  int next = 1;
  while (next < count && strcmp(words[next], "--") != 0)
    if (!take_order(&orders, words[next++])) next = count;
  if (next + 1 >= count) {
    fputs("usage: petrel-guard <name>=<number>... -- <program> <argument>...\n", stderr);
    return kCannotGuard;
  }
  if (getpid() != 1) {
    fputs("petrel-guard: it must be process 1 of a sandbox, so that nothing can outlive it\n", stderr);
    return kCannotGuard;
  }
  prctl(PR_SET_DUMPABLE, 0); /* The program must not trace it, nor open its files. */
  if (orders.report > 0) fcntl((int)orders.report, F_SETFD, FD_CLOEXEC);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("signalfd");
  const pid_t program = fork();
  if (program < 0) fail("fork");
  if (program == 0) run_program(&orders, words + next + 1);
  return guard(&orders, program, signals);
}
