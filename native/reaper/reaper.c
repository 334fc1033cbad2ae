/*
 * petrel-reaper [--guarded] <program> <argument>...: runs one scorer and ends everything that the scorer started.
 *
 * As a child subreaper it becomes the parent of each descendant whose own parent ends, also of one that left its
 * session, its process group or its environment behind. So no descendant can leave its tree, and when wait() finds no
 * child, none is left.
 *
 * Descriptors 0, 1 and 2 are the scorer's. Descriptor 3 is a socket to the worker:
 *   'r' or 'p' asks for the resident or the proportional memory of all descendants; the answer is "<KiB>
 *   <processes>\n". When the worker closes it, or dies, everything is ended.
 * The reaper ends as the scorer did: with its exit code, or by its signal.
 *
 * With --guarded a second process stands above the reaper and does the same for it: whichever of the two is killed, the
 * other one ends everything.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kControl = 3, kCannotStart = 127, kCannotWatch = 126 };

static void fail(const char *what) {
  fprintf(stderr, "petrel-reaper: %s: %s\n", what, strerror(errno));
  _exit(kCannotWatch);
}

/* ---- the tree of processes, from /proc ---- */

typedef struct {
  pid_t *pids;
  size_t count, room;
} Pids;

static void add(Pids *list, pid_t pid) {
  if (list->count == list->room) {
    list->room = list->room == 0 ? 256 : 2 * list->room;
    list->pids = realloc(list->pids, list->room * sizeof(pid_t));
    if (list->pids == NULL) fail("cannot list processes");
  }
  list->pids[list->count++] = pid;
}

/* Adds the children that one thread of a process has started. Returns 0 when the file cannot be opened. */
static int add_children_of_thread(Pids *list, pid_t pid, const char *thread) {
  char path[128];
  snprintf(path, sizeof path, "/proc/%d/task/%s/children", (int)pid, thread);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  int child;
  while (fscanf(file, "%d", &child) == 1) add(list, (pid_t)child);
  fclose(file);
  return 1;
}

static void add_children(Pids *list, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (threads == NULL) return; /* It is gone, and its children are ours. */
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
    if (entry->d_name[0] != '.') add_children_of_thread(list, pid, entry->d_name);
  closedir(threads);
}

/*
 * All descendants, parents before children; each gets `signal` unless it is 0. A process gets it before its children
 * are listed: with SIGKILL pending it cannot fork any more.
 */
static Pids descendants(int signal) {
  Pids list = {0};
  add_children(&list, getpid());
  for (size_t i = 0; i < list.count; i++) {
    if (signal != 0) kill(list.pids[i], signal);
    add_children(&list, list.pids[i]);
  }
  return list;
}

/* ---- memory ---- */

static long resident_kib(pid_t pid) {
  char path[64];
  long pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  if (fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Shared pages count by their share: processes that were forked from one big one are not each as big. */
static long proportional_kib(pid_t pid) {
  char path[64], line[256];
  long kib = -1;
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return resident_kib(pid);
  while (kib < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "Pss: %ld", &kib) != 1) kib = -1;
  fclose(file);
  return kib < 0 ? resident_kib(pid) : kib;
}

static void answer(char question) {
  Pids all = descendants(0);
  long kib = 0;
  for (size_t i = 0; i < all.count; i++)
    kib += question == 'p' ? proportional_kib(all.pids[i]) : resident_kib(all.pids[i]);
  dprintf(kControl, "%ld %zu\n", kib, all.count);
  free(all.pids);
}

/* ---- the scorer ---- */

static void run_scorer(char **command, pid_t reaper) {
  /* Should the reaper be killed, the scorer goes too. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != reaper) _exit(kCannotStart);
  setsid(); /* A scorer that signals its own process group does not meet the reaper. */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(command[0], command);
  fprintf(stderr, "%s cannot be started: %s\n", command[0], strerror(errno));
  _exit(kCannotStart);
}

/* Takes the end of each child that has ended. Returns 1 when the scorer itself is among them. */
static int take_ended(pid_t scorer, int *status) {
  int ended = 0, one;
  for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;) {
    if (pid != scorer) continue;
    *status = one;
    ended = 1;
  }
  return ended;
}

/*
 * Each round signals all descendants and waits for a child to end. Whoever slipped through, forked between the listing
 * and the signal, is below one that was signalled or has become our child: a later round finds it.
 */
static void end_all(void) {
  for (;;) {
    free(descendants(SIGKILL).pids);
    if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD) return;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
  }
}

static void end_as(int status) {
  if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  sigset_t all;
  sigfillset(&all);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  _exit(128 + WTERMSIG(status));
}

/* Until the scorer ends (its status) or the worker wants it ended (SIGKILL, as a status). */
static int watch(pid_t scorer, int signals) {
  struct pollfd sources[] = {{.fd = signals, .events = POLLIN}, {.fd = kControl, .events = POLLIN}};
  for (;;) {
    if (poll(sources, 2, -1) < 0 && errno != EINTR) return SIGKILL;
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0)
      if (info.ssi_signo != SIGCHLD) return SIGKILL;
    int status;
    if (take_ended(scorer, &status)) return status;
    if (sources[1].revents == 0) continue;
    char question;
    if (read(kControl, &question, 1) != 1) return SIGKILL;
    answer(question);
  }
}

static void become_subreaper(void) {
  if (access("/proc/self/task", R_OK) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) fail("cannot watch processes");
}

/* Returns in a new process, which goes on as the reaper. This one waits for it, and ends what it has left. */
static void guard(void) {
  become_subreaper();
  const pid_t above = getpid(), reaper = fork();
  if (reaper < 0) fail("fork");
  if (reaper == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != above) _exit(kCannotStart);
    return;
  }
  close(kControl);
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, 0)) != reaper;)
    if (pid < 0 && errno != EINTR) fail("waitpid");
  end_all();
  end_as(status);
}

int main(int count, char **words) {
  const int guarded = count > 2 && strcmp(words[1], "--guarded") == 0;
  if (count < 2) {
    fputs("usage: petrel-reaper [--guarded] <program> <argument>...\n", stderr);
    return kCannotWatch;
  }
  if (guarded) guard();
  words += guarded;
  become_subreaper();
  fcntl(kControl, F_SETFD, FD_CLOEXEC);
  sigset_t handled;
  sigemptyset(&handled);
  for (size_t i = 0; i < 4; i++) sigaddset(&handled, (int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP}[i]);
  sigprocmask(SIG_BLOCK, &handled, NULL);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) fail("signalfd");

  const pid_t reaper = getpid(), scorer = fork();
  if (scorer < 0) fail("fork");
  if (scorer == 0) run_scorer(words + 1, reaper);
  Pids first = {0};
  char thread[16];
  snprintf(thread, sizeof thread, "%d", (int)reaper);
  if (!add_children_of_thread(&first, reaper, thread)) {
    kill(scorer, SIGKILL);
    fail("this kernel does not list children (CONFIG_PROC_CHILDREN)");
  }
  free(first.pids);
  signal(SIGPIPE, SIG_IGN);
  setpriority(PRIO_PROCESS, 0, -10); /* Where it is allowed: forks without end must not starve what ends them. */
  /* The scorer's pipes must close when the scorer does. */
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < kControl; fd++) dup2(nothing, fd);

  const int status = watch(scorer, signals);
  end_all();
  end_as(status);
}
