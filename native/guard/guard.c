/*
 * petrel-guard <name>=<number>... -- <program> <argument>...
 *
 * The first process of a sandbox that bubblewrap has built (rewards/sandbox): process 1 of its process namespace. It
 * starts the program with less rights than its own, and watches all processes of the namespace. When the program ends
 * or a limit is exceeded, it reports how, and ends. The kernel then ends every process of the namespace: nothing can
 * leave one, and no process in it can stop or end process 1.
 *
 *   report=<fd>     where the report goes: one line of <name>=<value>; without it there is none
 *   uid=<number>    the user and the group of the program, from outside; needs CAP_SETUID, CAP_SETGID, CAP_SYS_PTRACE,
 *   CAP_KILL.
 *                   Without it bubblewrap has made a user namespace of its own.
 *   wall_ms, cpu_ms, memory_kib, tasks   limits of all processes together; tasks are processes and their threads
 *   file_kib, files                      limits of one process: size of a file, open files
 * A limit that is not given does not apply.
 *
 * petrel-guard enter <file> <program> <argument>...
 * Joins the cgroup of this cgroup.procs file, then becomes the program.
 *
 * petrel-guard namespace <uid> <program> <argument>...
 * Becomes the program in a new user namespace that knows root and this user; needs CAP_SETUID, CAP_SETGID and
 * CAP_SETFCAP.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "filter.h"
#include "listener.h"
#include "rights.h"
#include "usage.h"

/* How often the namespace is looked at. A process can fill about 10 MiB of memory in this time. */
enum { kFirstPauseMs = 2, kLongestPauseMs = 10 };
/* How often locks are counted, and mappings where there may be too many. */
enum { kRecordsPauseMs = 50 };
/* A program that is stopped so runs at least so many times longer than it is stopped. */
enum { kShareOfStops = 4 };

static void run_program(const Orders* orders, char** command, int channel) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  prctl(PR_SET_DUMPABLE, 1);
  write_file("/proc/self/oom_score_adj", "1000");
  for (int fd = 3; fd < 1024; fd++)
    if (fd != channel) close(fd);
  if (orders->uid > 0) become(orders->uid);
  limit_one_process(orders);
  if (filter_with_listener(channel, kernel_has(5, 5)) != 0) fail("the filter of system calls");
  execvp(command[0], command);
  fprintf(stderr, "%s cannot be started: %s\n", command[0], strerror(errno));
  _exit(kCannotStart);
}

/* ---- the watch ---- */

static long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

typedef struct {
  const Orders* orders;
  DIR* proc;
  int listener; /* -1 when there is none any more. */
  long began_ms, peak_kib, most_tasks, cpu_ms;
  long shared_kib;                                /* Shared memory without a file, all that was ever made. */
  long mappings_kib, mappings_at_ms, locks_at_ms; /* When mappings may be counted again; when locks were counted. */
} Watch;

static int has_too_many_locks(Watch* watch) {
  if (now_ms() - watch->locks_at_ms < kRecordsPauseMs) return 0;
  watch->locks_at_ms = now_ms();
  return has_many_locks();
}

/*
 * Memory with shared pages counted once, and all mappings. A program would make mappings faster than this process can
 * count them, so it is stopped for the time.
 */
static long exact_kib(Watch* watch) {
  const long began = now_ms();
  if (began < watch->mappings_at_ms) return look(watch->proc, 1).kib + watch->mappings_kib + watch->shared_kib;
  kill(-1, SIGSTOP);
  watch->mappings_kib = kib_of_mappings(watch->proc, watch->orders->memory_kib);
  const long kib = look(watch->proc, 1).kib + watch->mappings_kib + watch->shared_kib;
  kill(-1, SIGCONT);
  const long took = now_ms() - began;
  watch->mappings_at_ms = now_ms() + kRecordsPauseMs + kShareOfStops * took;
  return kib;
}

/* The name of the exceeded limit, or NULL. */
static const char* exceeded(Watch* watch) {
  const Orders* most = watch->orders;
  const Usage used = look(watch->proc, 0);
  if (used.tasks > watch->most_tasks) watch->most_tasks = used.tasks;
  if (used.cpu_ms > watch->cpu_ms) watch->cpu_ms = used.cpu_ms;
  long kib = used.kib + watch->shared_kib;
  if (most->memory_kib > 0 && kib + used.most_mappings / kMappingsPerKib > most->memory_kib) kib = exact_kib(watch);
  if (kib > watch->peak_kib) watch->peak_kib = kib;
  if (most->tasks > 0 && used.tasks > most->tasks) return "tasks";
  if (most->memory_kib > 0 && (kib > most->memory_kib || has_too_many_locks(watch))) return "memory";
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

/* Waits for a signal, for a mapping of shared memory, or until it is time to look again. */
static void wait_for_event(Watch* watch, int signals, int timeout_ms) {
  struct pollfd sources[] = {{.fd = signals, .events = POLLIN}, {.fd = watch->listener, .events = POLLIN}};
  if (poll(sources, 2, timeout_ms) < 0 && errno != EINTR) fail("poll");
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) > 0) continue;
  if (sources[1].revents & POLLIN) {
    const long kib = admit_mapping(watch->listener);
    if (kib > 0) watch->shared_kib += kib;
  } else if (sources[1].revents != 0) {
    watch->listener = -1; /* No process has the filter any more. */
  }
}

static int guard(const Orders* orders, pid_t program, int signals, int listener) {
  const int watched = orders->wall_ms > 0 || orders->cpu_ms > 0 || orders->memory_kib > 0 || orders->tasks > 0;
  Watch watch = {.orders = orders, .proc = opendir("/proc"), .listener = listener, .began_ms = now_ms()};
  if (watch.proc == NULL) fail("/proc");
  for (;;) {
    wait_for_event(&watch, signals, watched ? pause_ms(&watch) : -1);
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

static int in_namespace(int count, char** words) {
  if (count < 4) return kCannotGuard;
  enter_namespace(words[2]);
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
  if (count > 1 && strcmp(words[1], "namespace") == 0) return in_namespace(count, words);
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
  int channel[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0) fail("socketpair");
  const pid_t program = fork();
  if (program < 0) fail("fork");
  if (program == 0) run_program(&orders, words + next + 1, channel[1]);
  close(channel[1]);
  const int listener = take_file(channel[0]);
  close(channel[0]);
  return guard(&orders, program, signals, listener);
}
