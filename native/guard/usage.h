/*
 * What the processes of this process namespace use together. Memory is what belongs to them, and what the kernel keeps
 * for them: page tables, swapped pages, mappings, the buffers of pipes and sockets, files in memory, locks. Without
 * cgroups nobody else counts it.
 */
#ifndef PETREL_GUARD_USAGE_H
#define PETREL_GUARD_USAGE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

typedef struct {
  long tasks, kib, cpu_ms;
  long most_mappings; /* At most so many: each takes a page of addresses. To count them is slow. */
} Usage;

/* The buffer of a pipe, and more than what an epoll instance keeps for one file. */
enum { kKibPerOpenFile = 64 };
/* An inode of tmpfs, its directory entry and a long name. */
enum { kKibPerFile = 2 };
/* A mapping takes about 256 bytes. */
enum { kMappingsPerKib = 4 };
/* A lock takes as much, but a program needs few. */
enum { kMostLocks = 4096 };
/* The kernel's usual limit of mappings of one process (vm.max_map_count). */
enum { kMostMappings = 65530 };

static size_t read_file(int folder, const char* path, char* text, size_t room) {
  const int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, room - 1);
  close(file);
  text[got < 0 ? 0 : got] = 0;
  return got < 0 ? 0 : (size_t)got;
}

/* The number after `name` at the start of a line; 0 when there is no such line. */
static long field(const char* text, const char* name) {
  const char* line = strstr(text, name);
  return line == NULL ? 0 : strtol(line + strlen(name), NULL, 10);
}

static int has_memory(const char* status) { return strstr(status, "\nVmPTE:") != NULL; }

/*
 * Reads the status of a process, and sets `place` to its folder. The first thread of a process may end before the
 * others: then the process looks as if it had neither memory nor files, and another thread shows them.
 */
static void find_memory(int proc, const char* pid, char* place, size_t room, char* status, size_t size) {
  char path[300], other[4096];
  snprintf(place, room, "%.20s", pid);
  snprintf(path, sizeof path, "%.20s/status", pid);
  if (read_file(proc, path, status, size) == 0 || has_memory(status) || field(status, "\nThreads:") < 2) return;
  snprintf(path, sizeof path, "%.20s/task", pid);
  const int folder = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* tasks = folder < 0 ? NULL : fdopendir(folder);
  if (tasks == NULL) return;
  for (struct dirent* entry; (entry = readdir(tasks)) != NULL;) {
    snprintf(path, sizeof path, "%.20s/status", entry->d_name);
    if (entry->d_name[0] == '.' || read_file(folder, path, other, sizeof other) == 0 || !has_memory(other)) continue;
    snprintf(status, size, "%s", other);
    snprintf(place, room, "%.20s/task/%.20s", pid, entry->d_name);
    break;
  }
  closedir(tasks);
}

/* Since Linux 6.2 the size of the folder is the number of open files; before, the size of their table is at least
 * that. */
static long open_files(int proc, const char* place, const char* status) {
  char path[300];
  struct stat folder;
  snprintf(path, sizeof path, "%s/fd", place);
  return fstatat(proc, path, &folder, 0) == 0 && folder.st_size > 0 ? folder.st_size : field(status, "\nFDSize:");
}

/* Resident pages but those of shared memory: that is counted as files, or by its size when it is made (listener.h). */
static long resident_kib(int proc, const char* place, const char* status, int exactly) {
  char path[300], text[2048];
  const long kib = field(status, "\nRssAnon:") + field(status, "\nRssFile:");
  snprintf(path, sizeof path, "%s/smaps_rollup", place);
  if (!exactly || kib == 0 || read_file(proc, path, text, sizeof text) == 0) return kib;
  const long share = field(text, "\nPss:");
  return share == 0 ? kib : share - field(text, "\nPss_Shmem:");
}

static void add_process(Usage* all, int proc, const char* pid, int exactly) {
  char path[300], place[64], text[1024], status[4096] = "";
  snprintf(path, sizeof path, "%.20s/stat", pid);
  if (read_file(proc, path, text, sizeof text) == 0) return; /* It has ended. */
  const char* fields = strrchr(text, ')');                   /* The name before it may contain anything. */
  long cpu[4], threads;
  if (fields == NULL || sscanf(fields + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %ld %ld %ld %*s %*s %ld",
                               &cpu[0], &cpu[1], &cpu[2], &cpu[3], &threads) != 5)
    return;
  all->tasks += threads > 0 ? threads : 1;
  all->cpu_ms += (cpu[0] + cpu[1] + cpu[2] + cpu[3]) * 1000 / sysconf(_SC_CLK_TCK);
  find_memory(proc, pid, place, sizeof place, status, sizeof status);
  if (!has_memory(status)) return; /* It is ending. */
  const long pages = field(status, "\nVmSize:") * 1024 / sysconf(_SC_PAGESIZE);
  all->most_mappings += pages < kMostMappings ? pages : kMostMappings;
  all->kib += resident_kib(proc, place, status, exactly) + field(status, "\nVmPTE:") + field(status, "\nVmSwap:") +
              open_files(proc, place, status) * kKibPerOpenFile;
}

/* Files of these file systems are memory. */
static long kib_of_files(void) {
  static const char* const kPlaces[] = {"/tmp", "/dev/shm"};
  long kib = 0;
  struct statfs place;
  for (size_t i = 0; i < sizeof kPlaces / sizeof *kPlaces; i++)
    if (statfs(kPlaces[i], &place) == 0)
      kib += (long)(place.f_blocks - place.f_bfree) * (long)place.f_bsize / 1024 +
             (long)(place.f_files - place.f_ffree) * kKibPerFile;
  return kib;
}

/* The most that the buffers of one Unix socket can hold: the kernel lets the last message exceed their size. */
static long kib_per_socket(void) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  const int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (one >= 0) getsockopt(one, SOL_SOCKET, SO_SNDBUF, &bytes, &size);
  close(one);
  return bytes > 0 ? 2L * bytes / 1024 : 416;
}

/* All sockets of the network namespace, also those that are in flight from one process to another. */
static long kib_of_sockets(void) {
  static long kib_each;
  char text[1024] = "\n";
  if (kib_each == 0) kib_each = kib_per_socket();
  read_file(AT_FDCWD, "/proc/net/sockstat", text + 1, sizeof text - 1);
  return field(text, "\nsockets: used") * kib_each;
}

static long ended_cpu_ms(void) {
  struct rusage ended;
  getrusage(RUSAGE_CHILDREN, &ended);
  return (ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1000 +
         (ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) / 1000;
}

/* The next process of the namespace but this one. */
static const char* next_process(DIR* proc) {
  for (struct dirent* entry; (entry = readdir(proc)) != NULL;)
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && strcmp(entry->d_name, "1") != 0) return entry->d_name;
  return NULL;
}

/*
 * All processes of the namespace but this one. Resident memory is fast to read and counts shared pages once per
 * process; `exactly`, they count by their share.
 */
static Usage look(DIR* proc, int exactly) {
  Usage all = {.kib = kib_of_files() + kib_of_sockets(), .cpu_ms = ended_cpu_ms()};
  rewinddir(proc);
  for (const char* pid; (pid = next_process(proc)) != NULL;) add_process(&all, dirfd(proc), pid, exactly);
  return all;
}

/* The lines of a file, up to about `most`; `unreadable` when it cannot be opened. */
static long count_lines(int folder, const char* path, long most, long unreadable) {
  char text[16384];
  const int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return unreadable;
  long count = 0;
  for (ssize_t got; count < most && (got = read(file, text, sizeof text)) > 0;)
    for (const char* at = text; (at = memchr(at, '\n', (size_t)(text + got - at))) != NULL; at++) count++;
  close(file);
  return count;
}

/*
 * The kernel shows the locks of this process namespace, and those that belong to an open file and to no process: nobody
 * can make these in a sandbox. A long list is slow to read and holds up others, so more than a few locks count as all
 * memory.
 */
static int has_many_locks(void) { return count_lines(AT_FDCWD, "/proc/locks", kMostLocks, 0) >= kMostLocks; }

/* A process whose mappings cannot be read hides them, and counts as one that has as many as it can. */
static long kib_of_mappings(DIR* proc, long most_kib) {
  char path[300], place[64], status[4096];
  const long most = (most_kib + 1) * kMappingsPerKib;
  long count = 0;
  rewinddir(proc);
  for (const char* pid; count < most && (pid = next_process(proc)) != NULL;) {
    status[0] = 0;
    find_memory(dirfd(proc), pid, place, sizeof place, status, sizeof status);
    if (!has_memory(status)) continue;
    snprintf(path, sizeof path, "%s/maps", place);
    count += count_lines(dirfd(proc), path, most - count, kMostMappings);
  }
  return count / kMappingsPerKib;
}

#endif
