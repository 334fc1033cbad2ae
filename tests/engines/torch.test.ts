// @module-tag engines
/** The torch engine passes the contract of engines, with one rank and with two, and `hf` that of samplers. */
import { describe } from 'vitest';
import { engineContract } from '../contracts/engine.ts';
import { hfHere, torchHere } from './torch-here.ts';

describe.each([1, 2])('%i ranks', (ranks) => engineContract('torch', torchHere(), hfHere(), ranks));
