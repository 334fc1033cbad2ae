export { petrelHome } from '../infra/home.ts';
