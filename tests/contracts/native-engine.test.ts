import { nativeEngines } from '../../workers/engine/native-engines.ts';
import { engineContract } from './engine.ts';

engineContract('the native engine', nativeEngines);
