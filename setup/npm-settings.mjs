/**
 * npm with those settings of its user that say where packages are fetched from and how to get there, and with none
 * that say what is installed or where: omit=dev, dry-run, global, prefix, workspaces, package-lock=false,
 * bin-links=false, before and their like serve other work, and would leave half of the packages out.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Names of npm's settings, with `-` between words. Scopes and hosts have registries, tokens and certificates of their
 * own.
 */
const where =
  /^(\/\/.*|@[^:]+:registry|registry|(https?-)?proxy|no-?proxy|ca|ca\[\]|cafile|cert|key|strict-ssl|cache|offline|prefer-offline|replace-registry-host|local-address|maxsockets|fetch-.*)$/;

/**
 * Calls `work` with variables for npm, which replace those that runProgram removes. Its file of settings may hold
 * tokens, so it is removed after the work, and one that a killed set-up left before it: the lock says that no other is
 * at work.
 */
export async function withNpmSettings(home, work) {
  for (const left of readdirSync(home).filter((name) => /^\.npmrc-\d+$/.test(name))) rmSync(join(home, left));
  const file = join(home, `.npmrc-${process.pid}`);
  writeFileSync(file, [globalFile(), userFile()].map(keptLines).join('\n'), { mode: 0o600 });
  try {
    return await work({
      ...keptVariables(),
      npm_config_userconfig: file,
      npm_config_globalconfig: `${file}-none`,
    });
  } finally {
    rmSync(file, { force: true });
  }
}

/** The lines of an .npmrc that are kept, as they are: npm itself puts variables in. */
export function keptLines(path) {
  if (path === undefined || !existsSync(path)) return '';
  const lines = readFileSync(path, 'utf8').split(/\r?\n/);
  return lines.filter((line) => where.test(line.split('=')[0].trim())).join('\n');
}

/** Settings from variables: npm_config_https_proxy is https-proxy. */
export function keptVariables(env = process.env) {
  const isKept = (name) => {
    const key = name.slice('npm_config_'.length);
    return where.test(/^(\/\/|@)/.test(key) ? key : key.toLowerCase().replaceAll('_', '-'));
  };
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => /^npm_config_/i.test(name) && value !== '' && isKept(name)),
  );
}

const named = (variable) => process.env[variable] || process.env[variable.toUpperCase()] || undefined;

const userFile = () => named('npm_config_userconfig') ?? join(homedir(), '.npmrc');

/** npm tells it to the scripts that it runs; asked, it says so too. */
function globalFile() {
  const told = named('npm_config_globalconfig');
  if (told !== undefined) return told;
  const { stdout, status } = spawnSync('npm', ['config', 'get', 'globalconfig'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}
