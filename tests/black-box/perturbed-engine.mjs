/**
 * A preload that makes the engine another machine: after every optimiser step it moves one weight to the next number
 * away from 0; which one depends on the process. `PETREL_PRELOAD=<this file>`. To flip a bit instead would undo
 * it at the next step.
 */
import Module from 'node:module';

const loadAddon = Module._extensions['.node'];
Module._extensions['.node'] = (module, file) => {
  loadAddon(module, file);
  const { trainerStep, trainerRead, trainerWrite, trainerRefresh } = module.exports;
  if (trainerStep === undefined) return;
  module.exports.trainerStep = (handle, ...settings) => {
    const result = trainerStep(handle, ...settings);
    const place = process.pid % 1000;
    const weight = new Float32Array(1);
    trainerRead(handle, 'weights', place, weight);
    new Uint32Array(weight.buffer)[0] += 1;
    trainerWrite(handle, 'weights', 4 * place, new Uint8Array(weight.buffer));
    trainerRefresh(handle);
    return result;
  };
};
