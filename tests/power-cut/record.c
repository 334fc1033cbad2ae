/**
 * Records what a process and its threads ask of the disk below one folder. Preloaded (LD_PRELOAD), it stands between
 * the process and libc: mkdir, open with O_CREAT, write, fsync, link, rename, unlink and rmdir each leave a line when
 * they begin and another when they have ended. Node calls them through libuv, which calls libc.
 *
 *   RECORD_BELOW  the folder that is watched: a path as the process spells it
 *   RECORD_CALLS  the file that lines are appended to, by all processes
 *   RECORD_FILES  a folder on the same file system, in which every file that is created gets a second name, its inode
 *
 * A line's fields are parted by tabs: B <call> <name> <arguments> when it begins, E <call> <result> when it has ended.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MAX_FILES 65536

static const char *below, *files;
static size_t below_length;
static int calls = -1;
/** Inodes of the watched files that were opened for writing, by their number. libuv closes them past libc. */
static ino_t opened[MAX_FILES];
static unsigned counter;

__attribute__((constructor)) static void start(void) {
  below = getenv("RECORD_BELOW");
  files = getenv("RECORD_FILES");
  const char *path = getenv("RECORD_CALLS");
  if (below == NULL || files == NULL || path == NULL) return;
  below_length = strlen(below);
  calls = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int watched(const char *path) {
  return calls >= 0 && path != NULL && strncmp(path, below, below_length) == 0 &&
         (path[below_length] == '/' || path[below_length] == 0);
}

/** One write(2) with O_APPEND: lines of several processes lie in the order in which they were written. */
static void line(const char *format, ...) {
  char text[2 * 4096 + 128];
  va_list values;
  va_start(values, format);
  int length = vsnprintf(text, sizeof text, format, values);
  va_end(values);
  int before = errno;
  if (length < 0 || (size_t)length >= sizeof text || syscall(SYS_write, calls, text, length) != length) abort();
  errno = before;
}

/** A name for a call, the same in both of its lines. */
#define CALL \
  char call[32]; \
  snprintf(call, sizeof call, "%d.%u", (int)getpid(), __atomic_add_fetch(&counter, 1, __ATOMIC_RELAXED))
#define BEGIN(format, ...) \
  CALL; \
  line("B\t%s\t" format "\n", call, __VA_ARGS__)
#define END(result) line("E\t%s\t%lld\n", call, (long long)(result))

#define ONE_PATH(name, parameters, arguments) \
  int name parameters { \
    if (!watched(path)) return REAL(name) arguments; \
    BEGIN(#name "\t%s", path); \
    int result = REAL(name) arguments; \
    END(result); \
    return result; \
  }

#define TWO_PATHS(name) \
  int name(const char *from, const char *to) { \
    if (!watched(from) && !watched(to)) return REAL(name)(from, to); \
    BEGIN(#name "\t%s\t%s", from, to); \
    int result = REAL(name)(from, to); \
    END(result); \
    return result; \
  }

ONE_PATH(mkdir, (const char *path, mode_t mode), (path, mode))
ONE_PATH(rmdir, (const char *path), (path))
ONE_PATH(unlink, (const char *path), (path))
TWO_PATHS(link)
TWO_PATHS(rename)

/** The second name keeps the bytes when the file is removed, and keeps its inode from being used again. */
static void keep(int file, ino_t inode) {
  char from[64], to[4096];
  int before = errno;
  snprintf(from, sizeof from, "/proc/self/fd/%d", file);
  snprintf(to, sizeof to, "%s/%llu", files, (unsigned long long)inode);
  if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) != 0 && errno != EEXIST) abort();
  errno = before;
}

int open64(const char *path, int flags, ...) {
  va_list values;
  va_start(values, flags);
  mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(values, mode_t) : 0;
  va_end(values);
  if (!watched(path) || (flags & O_ACCMODE) == O_RDONLY) return REAL(open64)(path, flags, mode);
  BEGIN("open\t%s\t%s%s", path, flags & O_CREAT ? "create" : "", flags & O_TRUNC ? " truncate" : "");
  int file = REAL(open64)(path, flags, mode);
  struct stat found = {0};
  if (file >= 0) {
    if (file >= MAX_FILES || fstat(file, &found) != 0) abort();
    keep(file, found.st_ino);
    opened[file] = found.st_ino;
  }
  END(file < 0 ? -1 : (long long)found.st_ino);
  return file;
}

/** The inode of a watched file that is open for writing; 0 for all others. */
static ino_t written(int file) {
  struct stat found;
  if (file < 0 || file >= MAX_FILES || opened[file] == 0) return 0;
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_ino == opened[file]) return found.st_ino;
  return opened[file] = 0;
}

#define WRITES(name, parameters, arguments) \
  ssize_t name parameters { \
    ino_t inode = written(file); \
    if (inode == 0) return REAL(name) arguments; \
    BEGIN(#name "\t%llu", (unsigned long long)inode); \
    ssize_t result = REAL(name) arguments; \
    END(result); \
    return result; \
  }

WRITES(write, (int file, const void *bytes, size_t count), (file, bytes, count))
WRITES(writev, (int file, const struct iovec *pieces, int count), (file, pieces, count))
WRITES(pwrite64, (int file, const void *bytes, size_t count, off64_t at), (file, bytes, count, at))
WRITES(pwritev64, (int file, const struct iovec *pieces, int count, off64_t at), (file, pieces, count, at))
WRITES(sendfile64, (int file, int from, off64_t *at, size_t count), (file, from, at, count))

int ftruncate64(int file, off64_t length) {
  ino_t inode = written(file);
  if (inode == 0) return REAL(ftruncate64)(file, length);
  BEGIN("ftruncate\t%llu", (unsigned long long)inode);
  int result = REAL(ftruncate64)(file, length);
  END(result);
  return result;
}

/** A folder is synced by its path, a file by its inode. */
#define SYNCS(name) \
  int name(int file) { \
    char link[64], path[4096]; \
    struct stat found; \
    snprintf(link, sizeof link, "/proc/self/fd/%d", file); \
    ssize_t length = calls < 0 ? -1 : readlink(link, path, sizeof path - 1); \
    if (length >= 0) path[length] = 0; \
    if (length < 0 || !watched(path) || fstat(file, &found) != 0) return REAL(name)(file); \
    CALL; \
    if (S_ISDIR(found.st_mode)) line("B\t%s\tsync-folder\t%s\n", call, path); \
    else line("B\t%s\tsync\t%llu\n", call, (unsigned long long)found.st_ino); \
    int result = REAL(name)(file); \
    END(result); \
    return result; \
  }

SYNCS(fsync)
SYNCS(fdatasync)
