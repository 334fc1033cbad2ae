/**
 * Takes the bytes of one thing, in order, in pieces that may end in the middle of a value. Its promise makes the sender
 * wait.
 */
export type ByteSink = (bytes: Uint8Array) => void | Promise<void>;
