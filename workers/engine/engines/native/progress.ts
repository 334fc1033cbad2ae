/** Progress of the native engine, for the thread that answers messages: it computes in this process. */
export { engineTicks as nativeTicks } from '../../../../native/ticks.ts';
