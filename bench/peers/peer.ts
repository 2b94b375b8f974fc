/**
 * Other gateways as a bench runs them: what each is, how it is installed, how it is started.
 * All are installed below one folder, by version, and never by a bench that was not asked to.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packageFile } from '../../src/files/package-file.js'
import type { Children, Started } from '../processes/children.js'

/** Where a peer listens and where it finds its upstream. */
export interface Place {
  readonly children: Children
  readonly core: number
  readonly port: number
  readonly upstreamPort: number
}

/** A peer that has been started. */
export interface StartedPeer {
  readonly started: Started
  /** The port that it chose itself, if it does not take one. */
  readonly port?: number
  /** The path of chat completions, without a query. */
  readonly path: string
  /** What it calls the model that the upstream calls `gpt-4o-mini`. */
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
}

/** Another gateway. */
export interface PeerKind {
  readonly name: string
  readonly version: string
  /** A file that exists once it is installed. */
  readonly installedFile: string
  /** The commands that install it, run one after the other in `PEERS`. */
  readonly install: readonly (readonly string[])[]
  start(place: Place): Promise<StartedPeer>
}

/** The folder of installed peers: `SLUICE_BENCH_PEERS`, else `build/bench-peers`. */
export const PEERS = process.env['SLUICE_BENCH_PEERS'] ?? packageFile(join('build', 'bench-peers'))

/** The key that clients send to peers that want one. */
export const CLIENT_KEY = 'sk-bench'
/** A start that takes longer has failed; LiteLLM takes 20 s on one core. */
export const START_MS = 90_000

/** Where a file of an installed peer is. */
export function peerFile(...parts: readonly string[]): string {
  return join(PEERS, ...parts)
}

/** What a crate's program is called once `cargo install` has built it. */
export function crate(name: string, version: string): Pick<PeerKind, 'installedFile' | 'install'> {
  const root = peerFile(`${name}-${version}`)
  return {
    installedFile: join(root, 'bin', name),
    install: [['cargo', 'install', '--locked', name, '--version', version, '--root', root]],
  }
}

/** A Python package in an environment of its own. */
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

/** Whether it can be started. */
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
