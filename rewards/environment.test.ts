import { expect, it } from 'vitest';
import { scorerEnvironment } from './environment.ts';

it('a scorer gets the variables that programs need and those that the recipe names, and no others', () => {
  const worker = {
    PATH: '/bin',
    HOME: '/home/me',
    LANG: 'C.UTF-8',
    LC_ALL: 'C',
    TZ: 'UTC',
    TMPDIR: '/tmp',
    PYTHONPATH: '/lib',
    PYTHONHOME: '/other',
    PYTHONINSPECT: '1',
    PYTHONWARNINGS: 'error',
    OMP_NUM_THREADS: '2',
    AWS_SECRET_ACCESS_KEY: 'cloud',
    HF_TOKEN: 'hub',
    NATS_TOKEN: 'queue',
    PETREL_HOME: '/home/me/.petrel',
    NODE_OPTIONS: '--inspect',
    LD_PRELOAD: '/x.so',
    HTTPS_PROXY: 'http://user:password@proxy',
  };
  expect(scorerEnvironment(worker, { PYTHONWARNINGS: 'ignore', TZ: undefined }, { JUDGE_KEY: 'named' })).toEqual({
    PATH: '/bin',
    HOME: '/home/me',
    LANG: 'C.UTF-8',
    LC_ALL: 'C',
    TMPDIR: '/tmp',
    PYTHONPATH: '/lib',
    PYTHONWARNINGS: 'ignore',
    OMP_NUM_THREADS: '2',
    JUDGE_KEY: 'named',
  });
});
