export { petrelHome as homeOf } from '../infra/home.ts';
