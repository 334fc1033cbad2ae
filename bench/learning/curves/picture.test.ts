import { expect, it } from 'vitest';
import { picture } from './picture.ts';
import { overridesOf, ENTRIES } from './settings.ts';

it('a picture has a line for each seed and each mean, inside of its panel', () => {
  const bundle = [
    [0.5, 0.7, 0.9],
    [0.45, 0.75, 0.85],
  ];
  const svg = picture([
    { name: 'grpo', petrel: bundle, trl: bundle },
    { name: 'rloo', petrel: bundle, trl: bundle },
  ]);
  expect(svg.match(/class="petrel seed"/g)).toHaveLength(4);
  expect(svg.match(/class="trl mean" points/g)).toHaveLength(2);
  expect(svg).not.toMatch(/NaN|undefined/);
  const heights = [...svg.matchAll(/points="([^"]+)"/g)].flatMap(([, points]) =>
    String(points)
      .split(' ')
      .map((point) => Number(point.split(',')[1])),
  );
  expect(Math.min(...heights)).toBeGreaterThan(33);
  expect(Math.max(...heights)).toBeLessThan(255);
});

it('a comparison with several steps cuts the batch into as many mini-batches', () => {
  for (const entry of ENTRIES) expect(overridesOf(entry, 3)).toContain(`actor.ppo_mini_batch_size=${64 / entry.steps}`);
});
