/**
 * One set-up at a time, per checkout and per PETREL_HOME.
 *
 * The lock is a listening socket in Linux's abstract name space: the kernel lets one process have the name and frees it
 * when that process ends, however it ends. So there is no stale lock to recognise.
 */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { connect, createServer } from 'node:net';

/** Runs `work` holding the locks of these folders; calls `onWait` once if another set-up has to end first. */
export async function withSetupLock(folders, onWait, work) {
  const held = [];
  let told = false;
  const tellOnce = () => {
    if (!told) onWait();
    told = true;
  };
  try {
    for (const folder of new Set(folders.map((one) => realpathSync(one)))) held.push(await acquire(folder, tellOnce));
    return await work();
  } finally {
    for (const server of held) server.close();
  }
}

async function acquire(place, onWait) {
  const digest = createHash('sha256').update(place).digest('hex').slice(0, 32);
  const name = `\0petrel-setup-${process.getuid()}-${digest}`;
  for (;;) {
    const server = await listen(name);
    if (server) return server;
    onWait();
    await untilReleased(name);
  }
}

/** The listening server, or undefined when another process has the name. */
async function listen(name) {
  const waiters = new Set();
  const server = createServer((socket) => {
    waiters.add(socket);
    socket.on('error', () => waiters.delete(socket));
  });
  try {
    server.listen(name);
    await once(server, 'listening');
  } catch (error) {
    if (error.code === 'EADDRINUSE') return undefined;
    throw error;
  }
  server.unref();
  return {
    close: () => {
      server.close();
      waiters.forEach((socket) => socket.destroy());
    },
  };
}

/** The holder never says a word: the connection ends when the lock does. */
async function untilReleased(name) {
  const socket = connect(name);
  await new Promise((resolve) => {
    socket.on('close', resolve);
    socket.on('error', resolve);
  });
}
