import { expect, it } from 'vitest';
import { gpusHere, ofAmd, ofNvidia } from './gpu-facts.ts';

it('of NVIDIA are read from lines', () => {
  expect(ofNvidia('NVIDIA H100 80GB HBM3, 81559\nNVIDIA A10G, 23028\n\n')).toEqual([
    { name: 'NVIDIA H100 80GB HBM3', gib: 81_559 / 1024 },
    { name: 'NVIDIA A10G', gib: 23_028 / 1024 },
  ]);
  expect(ofNvidia('No devices were found\n')).toEqual([]);
});

it('of AMD are read from an object', () => {
  const text = JSON.stringify({
    card0: { 'Card Series': 'AMD Instinct MI300X', 'VRAM Total Memory (B)': String(192 * 2 ** 30) },
    system: { 'Driver version': '6.8' },
  });
  expect(ofAmd(text)).toEqual([{ name: 'AMD Instinct MI300X', gib: 192 }]);
});

it('may be played', async () => {
  const gpus = [{ name: 'H100', gib: 80 }];
  expect(await gpusHere({ PETREL_PLAYED_GPUS: JSON.stringify(gpus) })).toEqual(gpus);
  await expect(gpusHere({ PETREL_PLAYED_GPUS: '2' })).rejects.toThrow('expected [{"name": "H100", "gib": 80}], got 2');
});
