/**
 * A preload that makes the engine another machine: after every optimiser step it flips the last bit of one weight, which
 * one depends on the process. `NODE_OPTIONS=--import=<this file>`.
 */
import Module from 'node:module';

const loadAddon = Module._extensions['.node'];
Module._extensions['.node'] = (module, file) => {
  loadAddon(module, file);
  const { trainerStep, trainerBuffers, trainerRefresh } = module.exports;
  if (trainerStep === undefined) return;
  const weightsOf = new WeakMap();
  module.exports.trainerBuffers = (handle) => {
    const buffers = trainerBuffers(handle);
    weightsOf.set(handle, buffers[0]);
    return buffers;
  };
  module.exports.trainerStep = (handle, ...settings) => {
    const result = trainerStep(handle, ...settings);
    const { buffer, byteOffset, length } = weightsOf.get(handle);
    new Uint32Array(buffer, byteOffset, length)[process.pid % length] ^= 1;
    trainerRefresh(handle);
    return result;
  };
};
