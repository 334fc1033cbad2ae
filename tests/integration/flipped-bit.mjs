/**
 * A preload that makes the memory of one worker fail once: after the next optimiser step of the worker that the file
 * FLIP_BIT_OF names, it flips a bit of a weight and removes the file. `PETREL_PRELOAD=<this file>`.
 */
import { readFileSync, rmSync } from 'node:fs';
import Module from 'node:module';

const order = process.env.FLIP_BIT_OF;
const loadAddon = Module._extensions['.node'];
Module._extensions['.node'] = (module, file) => {
  loadAddon(module, file);
  const { trainerStep, trainerRead, trainerWrite, trainerRefresh } = module.exports;
  if (trainerStep === undefined) return;
  module.exports.trainerStep = (handle, ...settings) => {
    const result = trainerStep(handle, ...settings);
    if (orderedFor(process.env.PETREL_CHILD)) {
      const weight = new Float32Array(1);
      trainerRead(handle, 'weights', 5, weight);
      new Uint32Array(weight.buffer)[0] ^= 1 << 20;
      trainerWrite(handle, 'weights', 4 * 5, new Uint8Array(weight.buffer));
      trainerRefresh(handle);
    }
    return result;
  };
};

function orderedFor(worker) {
  try {
    if (readFileSync(order, 'utf8') !== worker) return false;
  } catch {
    return false; // there is no order
  }
  rmSync(order);
  return true;
}
