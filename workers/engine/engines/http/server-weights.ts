/**
 * The weights of a server at `rollout.url`: they are written into a folder that the server sees, the server loads
 * them, and its log-probs show that it has.
 *
 * The label of its weights says who has loaded what. A server that has loaded nothing since it started proves two
 * things first. With weights that are all 0, every token must have the same probability: so a call that answers and
 * does nothing is noticed, and so is a vocabulary of another size. With the rows of the embedding and of the head in
 * the reverse order, the mirrored prompt must get the mirrored answer: so a server is noticed that keeps a head of its
 * own beside the embedding that it is tied to, as vLLM 0.32 does on a processor. After that, weights with another
 * digest must change its numbers; where they do not, it is tried with zeros again.
 */
import { at } from '../../../../core/at.ts';
import { log } from '../../../../core/math/log.ts';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../../../core/ids.ts';
import type { EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import type { NamedWeights } from '../../../../core/ports/sampler.ts';
import { publishedBytes } from '../../../../core/records/publications.ts';
import type { SamplingServer } from '../../../../core/sampling-server.ts';
import { serverNonsense, serverShared, wrongServer } from '../../../../infra/sampling-servers/faults.ts';
import { loadingLabel, ownLabel, untouched } from '../../../../infra/sampling-servers/sampling-api.ts';
import type { SamplingApi, ServerFacts } from '../../../../infra/sampling-servers/sampling-api.ts';
import { digestOf } from '../../../../log/objects/digest.ts';
import { checkRoom } from '../../../../log/objects/free-space.ts';
import { copyCompanions } from '../../../../models/folder.ts';
import { inTurn } from './folder-turn.ts';
import { areNear, isNear, isSame } from './numbers.ts';
import type { Numbers } from './numbers.ts';
import { rowsOfTokens } from './parameters.ts';
import { PublishedFile } from '../published-file.ts';
import { asUnwritable } from './unwritable.ts';
import { removed, removeOthers, removeWeights, writing, zeros } from './weights-folder.ts';

export interface ServerWeightsPorts {
  readonly server: SamplingServer;
  readonly api: SamplingApi;
  readonly facts: ServerFacts;
  /** The folder of this server's weights, which it sees under the same path. */
  readonly folder: string;
  /** The model: its config.json, tokenizer and first weights. */
  readonly model: string;
  readonly vocab: number;
  readonly parameters: readonly EngineParameter[];
}

/** A publication in its folder. */
interface Written {
  readonly path: string;
  readonly file: PublishedFile;
  /** It is the model's own weights. */
  readonly isBase: boolean;
}

const weightsFile = 'model.safetensors';
/** Tokens of a prompt, and of its answer. */
const probed = 8;
/** Prompts to which a mirrored model must answer as the model itself. */
const prompts = [0, 1, 2];
/** Largest difference to −ln V where all tokens are equally likely: bf16 rounds no logit of 0. */
const uniformTolerance = 1e-3;

export class ServerWeights {
  readonly #ports: ServerWeightsPorts;
  /** The file of these weights, from which they can be read while they come into it. */
  #file: PublishedFile | undefined;
  /** The label of the server while this worker loads. */
  #loading = '';

  constructor(ports: ServerWeightsPorts) {
    this.#ports = ports;
  }

  static labelOf(format: WeightsFormat, digest: Digest): string {
    return `${ownLabel}${format.toLowerCase()}-${digest.slice(0, 32)}`;
  }

  /** Resolves with the digest of what the server has now. */
  async use(source: StateSource, { format, hash }: NamedWeights, call?: Call): Promise<Digest> {
    const { folder } = this.#ports;
    const written = join(folder, `${writing}${randomUUID()}`);
    try {
      await mkdir(written, { recursive: true });
      const file = await this.#write(written, source, { format, hash }, call);
      const digest = await file.digest(hash, call);
      const label = ServerWeights.labelOf(format, digest);
      const path = join(folder, label);
      const turn = async () => {
        const given = await this.#moved(written, path, file);
        await this.#give({ path, file: given, isBase: source.type === 'folder' }, label, call);
        await removeOthers(folder, path);
      };
      await inTurn(folder, turn, call?.tick);
      return digest;
    } catch (error) {
      await this.#closeFile();
      throw asUnwritable(folder, error);
    } finally {
      await removed(written);
    }
  }

  /** Copies bytes of the publication that the server has. */
  async readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    const file = this.#file;
    if (file?.format !== format) throw new Error(`the server has no weights in ${format}`);
    await file.read(start, into);
  }

  /** The server has read its weights: they are removed, unless another worker loads just now. */
  async close(): Promise<void> {
    await this.#closeFile();
    await removeWeights(this.#ports.folder);
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #write(path: string, source: StateSource, named: NamedWeights, call?: Call): Promise<PublishedFile> {
    const { format, hash } = named;
    const { folder, model, parameters } = this.#ports;
    await checkRoom('the folder of rollout.weights_dir', folder, publishedBytes(parameters, format));
    await this.#closeFile();
    const file = await PublishedFile.create(join(path, weightsFile), parameters, format);
    this.#file = file;
    await file.fill(source, hash, call);
    await copyModelFiles(model, path);
    await file.sync();
    return file;
  }

  /** The file in its place. Where another worker has put the same weights, its file serves, and this one is closed. */
  async #moved(written: string, path: string, file: PublishedFile): Promise<PublishedFile> {
    if (!existsSync(path)) {
      await rename(written, path);
      return file;
    }
    const there = await PublishedFile.open(join(path, weightsFile), this.#ports.parameters, file.format);
    this.#file = there;
    await file.close();
    return there;
  }

  /** Gives the weights to the server, unless it has them: another worker of the run has loaded them. */
  async #give(written: Written, label: string, call?: Call): Promise<void> {
    const { api } = this.#ports;
    const before = await api.label();
    if (before === label) return;
    const loading = `${loadingLabel}-${randomUUID()}`;
    // The weights are undefined from here on, also when this process dies.
    await api.setLabel(loading);
    this.#loading = loading;
    if (before.startsWith(ownLabel) && !before.startsWith(loadingLabel)) await this.#giveNext(written);
    else await this.#giveFirst(written, before === untouched, call);
    await api.setLabel(label);
  }

  /** Gives weights to a server that has proved nothing since it started. */
  async #giveFirst({ path, file, isBase }: Written, isUntouched: boolean, call?: Call): Promise<void> {
    const itsOwn = isBase && isUntouched ? await this.#ask() : undefined;
    const ofZeros = await this.#giveZeros();
    const mirrored = await this.#askMirrored(file, call);
    await this.#ports.api.load(path);
    const answers = await this.#askAll();
    const numbers = at(answers, 0);
    this.#requireOther(ofZeros, numbers);
    if (mirrored !== undefined) this.#requireMirrored(mirrored, answers);
    if (itsOwn !== undefined) this.#requireNear(itsOwn, numbers);
  }

  /** Replaces weights. Where the numbers stay, the update is that small, or the server has ignored it. */
  async #giveNext({ path }: Written): Promise<void> {
    const { api } = this.#ports;
    const before = await this.#ask();
    await api.load(path);
    if (!isSame(before, await this.#ask())) return;
    const ofZeros = await this.#giveZeros();
    await api.load(path);
    this.#requireOther(ofZeros, await this.#ask());
  }

  /** With all weights 0, every token has the same probability. Throws PauseError `WrongServer`. */
  async #giveZeros(): Promise<Numbers> {
    const { server, api, folder, model, parameters, vocab } = this.#ports;
    const path = join(folder, `${zeros}${shapesDigest(parameters)}`);
    if (!existsSync(join(path, weightsFile))) {
      await mkdir(path, { recursive: true });
      await copyModelFiles(model, path);
      await (await PublishedFile.create(join(path, weightsFile), parameters, 'F32')).close();
    }
    await api.load(path);
    const numbers = await this.#ask();
    const away = Math.max(...numbers.logProbs.map((value) => Math.abs(value + log(vocab))));
    if (away > uniformTolerance)
      throw wrongServer(
        server.url,
        `did not take new weights: with zeros, each of ${vocab} tokens has the log-prob ${(-log(vocab)).toFixed(4)}; it gave ${numbers.logProbs[0]?.toFixed(4)}`,
        `start it with the model of the recipe, where it can read ${folder}; a server that keeps its weights cannot sample for training`,
        'rollout.weights_dir',
      );
    return numbers;
  }

  /**
   * The answers of the model whose tokens are numbered from the end, with its tokens as they are in the model itself.
   * Undefined: no tensor is known to have a row for each token.
   */
  async #askMirrored(file: PublishedFile, call?: Call): Promise<readonly Numbers[] | undefined> {
    const { api, folder, model, parameters, vocab } = this.#ports;
    const rows = rowsOfTokens(parameters, vocab);
    if (rows.size === 0) return undefined;
    const path = join(folder, `${writing}${randomUUID()}`);
    await mkdir(path);
    try {
      await checkRoom('the folder of rollout.weights_dir', folder, file.bytes);
      const mirrored = await PublishedFile.create(join(path, weightsFile), parameters, file.format);
      await mirrored.fillMirrored(file, rows, call).finally(() => mirrored.close());
      await copyModelFiles(model, path);
      await api.load(path);
      const mirror = (token: number) => vocab - 1 - token;
      const answers = await this.#askAll(mirror);
      return answers.map(({ tokens, logProbs }) => ({ tokens: tokens.map(mirror), logProbs }));
    } finally {
      await removed(path);
    }
  }

  /** The numbers of a model are not those of zeros. */
  #requireOther(ofZeros: Numbers, numbers: Numbers): void {
    const { server, folder } = this.#ports;
    if (!isSame(ofZeros, numbers)) return;
    throw wrongServer(
      server.url,
      'took zeros as weights, and kept them when it was given the model',
      `see the server’s log, and whether it reads ${folder}`,
      'rollout.weights_dir',
    );
  }

  #requireMirrored(mirrored: readonly Numbers[], answers: readonly Numbers[]): void {
    if (areNear(mirrored, answers)) return;
    throw wrongServer(
      this.#ports.server.url,
      `takes a part of new weights and keeps another: it gave the tokens ${firstOf(answers)}, and with its tokens in another order ${firstOf(mirrored)}`,
      'vLLM on a processor keeps a head that is tied to the embedding: set rollout.url=null to sample with petrel’s own vLLM, or serve a model with tie_word_embeddings: false',
    );
  }

  /** The server's own weights, and the recipe's. */
  #requireNear(first: Numbers, second: Numbers): void {
    const { server } = this.#ports;
    if (isNear(first, second)) return;
    throw wrongServer(
      server.url,
      `serves another model than the recipe’s: with its own weights it gave the log-probs ${shown(first)}, with those of model.path ${shown(second)}`,
      'start it with the model of the recipe: model.path',
    );
  }

  /** The answer to each prompt; `as`: gives the token to ask with in place of one. */
  async #askAll(as?: (token: number) => number): Promise<readonly Numbers[]> {
    const answers: Numbers[] = [];
    for (const prompt of prompts) answers.push(await this.#ask(as, prompt));
    return answers;
  }

  async #ask(as = (token: number) => token, which = 0): Promise<Numbers> {
    const { api, facts, vocab, server } = this.#ports;
    // Nothing that was kept of an earlier question may answer this one.
    const label = `${ownLabel}asks-${randomUUID()}`;
    const prompt = Array.from({ length: probed }, (_, i) => as((7 * (i + 1) + 11 * which) % vocab));
    const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
    const maxNewTokens = Math.max(1, Math.min(probed, facts.maxModelLen - probed));
    const [tokens, logProbs]: [number[], number[]] = [[], []];
    for await (const made of api.sample({ prompt, sampling, maxNewTokens, stopTokens: [], seed: 1, label }, facts)) {
      tokens.push(...made.tokens);
      logProbs.push(...made.logProbs);
    }
    // Whoever else loads has set another label before: then the answer says nothing of this worker's weights.
    if ((await api.label()) !== this.#loading)
      throw serverShared(server.url, 'was given other weights at the same time');
    if (tokens.length !== maxNewTokens)
      throw serverNonsense(server.url, `${tokens.length} tokens where ${maxNewTokens} were asked for`);
    return { tokens, logProbs };
  }
}

/** Names the layout of a model's weights. */
const shapesDigest = (parameters: readonly EngineParameter[]): string =>
  digestOf(parameters.map(({ name, shape }) => [name, shape])).slice(0, 16);

async function copyModelFiles(from: string, to: string): Promise<void> {
  await copyFile(join(from, 'config.json'), join(to, 'config.json'));
  await copyCompanions(from, to);
}

/** The first token of each answer, and its log-prob. */
const firstOf = (answers: readonly Numbers[]): string =>
  answers.map(({ tokens, logProbs }) => `${at(tokens, 0)} (${at(logProbs, 0).toFixed(3)})`).join(', ');

const shown = ({ logProbs }: Numbers): string =>
  logProbs
    .slice(0, 3)
    .map((value) => value.toFixed(3))
    .join(', ');
