/*
 * Shared memory without a file is counted by its size when a program maps it: the filter lets the guard decide, and the
 * guard hears of each such mapping before it is made. The arguments are registers, so nobody can change them
 * afterwards.
 */
#ifndef PETREL_GUARD_LISTENER_H
#define PETREL_GUARD_LISTENER_H

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "filter.h"

/* Linux 5.5. */
#ifndef SECCOMP_USER_NOTIF_FLAG_CONTINUE
#define SECCOMP_USER_NOTIF_FLAG_CONTINUE 1
#endif

/*
 * The kernel counts the files that all processes of a user have in flight. Another sandbox of the same user may hold
 * that number, until its program sends or ends, so this one waits for its turn: 30 seconds at most.
 */
static int send_in_turn(int channel, const struct msghdr* message) {
  for (int tries = 0; tries < 3000; tries++) {
    if (sendmsg(channel, message, 0) == 1) return 0;
    if (errno != ETOOMANYREFS) return -1;
    poll(NULL, 0, 10);
  }
  return -1;
}

/* Sends a byte, with `file` if it is one. */
static int send_file(int channel, int file) {
  char byte = 0, room[CMSG_SPACE(sizeof file)] = {0};
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  if (file >= 0) {
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
  }
  return send_in_turn(channel, &message);
}

/* The file that came; -1 when none did. */
static int take_file(int channel) {
  char byte, room[CMSG_SPACE(sizeof(int))];
  int file = -1;
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const struct cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head != NULL && head->cmsg_type == SCM_RIGHTS) memcpy(&file, CMSG_DATA(head), sizeof file);
  return file;
}

/*
 * Puts the filter around this process, and sends the listener to the guard. Where the kernel has no listener, or
 * another filter around all of this has it, shared memory without a file is refused.
 */
static int filter_with_listener(int channel, int kernel_continues) {
  int listener = -1;
  if (kernel_continues) listener = filter_calls(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (listener < 0 && filter_calls(REFUSE(EPERM), 0) != 0) return -1;
  return send_file(channel, listener);
}

/* Lets the next mapping be made, and returns its size in KiB; -1 when there is none. */
static long admit_mapping(int listener) {
  union {
    struct seccomp_notif notice;
    struct seccomp_notif_resp reply;
    char room[512]; /* A newer kernel may know longer ones. */
  } request, answer;
  memset(&request, 0, sizeof request);
  memset(&answer, 0, sizeof answer);
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return -1;
  answer.reply.id = request.notice.id;
  answer.reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  const unsigned long long kib = request.notice.data.args[1] / 1024 + 1;
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0 ? 0 : kib < 1ull << 40 ? (long)kib : 1l << 40;
}

#endif
