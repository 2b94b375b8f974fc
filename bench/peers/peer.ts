/**
 * Other gateways: how each is installed and started. All are installed below one folder, by version, and only
 * with `--install`.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packageFile } from '../../src/config/package-file.js'
import type { Children, Started } from '../processes/children.js'

/** The port of a gateway and the address of its upstream. */
export interface Place {
  readonly children: Children
  readonly core: number
  readonly port: number
  readonly upstreamPort: number
}

/** A running gateway. */
export interface StartedPeer {
  readonly started: Started
  /** The port that it chose itself, if it does not take one. */
  readonly port?: number
  /** The path of chat completions, without a query. */
  readonly path: string
  /** Its name for the model that the upstream calls `gpt-4o-mini`. */
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
}

/** Another gateway. */
export interface PeerKind {
  readonly name: string
  readonly version: string
  /** A file that exists once it is installed. */
  readonly installedFile: string
  /** The commands that install it, run in sequence in `PEERS`. */
  readonly install: readonly (readonly string[])[]
  start(place: Place): Promise<StartedPeer>
}

/** The folder of installed peers: `SLUICE_BENCH_PEERS`, else `build/bench-peers`. */
export const PEERS = process.env['SLUICE_BENCH_PEERS'] ?? packageFile(join('build', 'bench-peers'))

/** The key that clients send to gateways that need one. */
export const CLIENT_KEY = 'sk-bench'
/** A start that takes longer has failed; LiteLLM takes 20 s on one core. */
export const START_MS = 90_000

/** The path of a file of an installed gateway. */
export function peerFile(...parts: readonly string[]): string {
  return join(PEERS, ...parts)
}

/** The path of a program that `cargo install` has built. */
export function crate(name: string, version: string): Pick<PeerKind, 'installedFile' | 'install'> {
  const root = peerFile(`${name}-${version}`)
  return {
    installedFile: join(root, 'bin', name),
    install: [['cargo', 'install', '--locked', name, '--version', version, '--root', root]],
  }
}

/** A Python package in a virtual environment. */
export function wheel(
  folder: string,
  requirement: string,
  file: string,
): Pick<PeerKind, 'installedFile' | 'install'> {
  const root = peerFile(folder)
  return {
    installedFile: join(root, file),
    install: [
      ['python3', '-m', 'venv', root],
      [join(root, 'bin', 'pip'), 'install', '--quiet', requirement],
    ],
  }
}

/** True if it is installed. */
export function isInstalled({ installedFile }: PeerKind): boolean {
  return existsSync(installedFile)
}

/** Runs the commands at the lowest priority, their output on standard error. Throws if one fails. */
export function install(peer: PeerKind): void {
  mkdirSync(dirname(peer.installedFile), { recursive: true })
  for (const command of peer.install) {
    console.error(`bench: ${command.join(' ')}`)
    execFileSync('nice', ['-n', '19', ...command], { cwd: PEERS, stdio: ['ignore', 2, 2] })
  }
}
