/**
 * Finds or installs the real parts that the suite needs before it starts.
 * On Debian as root it installs them, and Helm with Go; elsewhere it prints what to install. Under CI a
 * missing part is an error; otherwise the tests that need it are skipped with a message. Large clients come
 * from npm.
 */
import { execFileSync, spawnSync, type ExecFileSyncOptions } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { HELM_PACKAGE, helmProgram } from './deploy/chart.js'

/** The folder of clients that are too large for `devDependencies`: npm packages in exact versions. */
const CLIENTS = 'build/clients'
const CLIENT_PACKAGES = ['@google/gemini-cli@0.61.0']

/** A program that tests start, the Debian package that has it, and its purpose. */
interface Part {
  readonly program: string
  readonly debian: string
  readonly purpose: string
}

const PARTS: readonly Part[] = [
  { program: 'prometheus', debian: 'prometheus', purpose: 'answers every dashboard expression' },
  { program: 'redis-server', debian: 'redis-server', purpose: 'is the store of a fleet' },
  { program: 'chromium', debian: 'chromium', purpose: "shows the dashboard's page" },
]

function found({ program }: Part): boolean {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some((folder) => existsSync(join(folder, program)))
}

function canInstall(): boolean {
  return process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0
}

function install(missing: readonly Part[]): void {
  const packages = missing.map(({ debian }) => debian)
  process.stderr.write(`test set-up: installing ${packages.join(', ')} (Debian packages)\n`)
  // Services must not start: the tests start their own, on free ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const options: ExecFileSyncOptions = { env, stdio: ['ignore', 'ignore', 'inherit'] }
  try {
    execFileSync('apt-get', ['update', '-qq'], options)
    execFileSync(
      'apt-get',
      ['install', '-y', '-qq', '--no-install-recommends', ...packages],
      options,
    )
  } catch (error) {
    process.stderr.write(`test set-up: ${error instanceof Error ? error.message : String(error)}\n`)
  }
}

/** Compiling Helm takes two minutes on two cores, once: Go keeps the result. */
const HELM_MS = 900_000

/** Debian has no package of Helm. */
function installHelm(): void {
  process.stderr.write(`test set-up: go install ${HELM_PACKAGE}\n`)
  const options: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'], timeout: HELM_MS }
  try {
    execFileSync('go', ['install', HELM_PACKAGE], options)
  } catch (error) {
    process.stderr.write(`test set-up: ${error instanceof Error ? error.message : String(error)}\n`)
  }
}

/** Tests of a client that cannot be installed are skipped, also under CI: a registry may be out of reach. */
function installClients(): void {
  const isMissing = CLIENT_PACKAGES.some(
    (name) => !existsSync(join(CLIENTS, 'node_modules', name.slice(0, name.lastIndexOf('@')))),
  )
  if (!isMissing) return
  process.stderr.write(`test set-up: installing ${CLIENT_PACKAGES.join(', ')} (npm packages)\n`)
  mkdirSync(CLIENTS, { recursive: true })
  const flags = [
    '--prefix',
    CLIENTS,
    '--omit=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
  ]
  const { status } = spawnSync('npm', ['install', ...flags, ...CLIENT_PACKAGES], {
    stdio: 'ignore',
  })
  if (status !== 0) process.stderr.write('test set-up: they cannot be installed\n')
}

installClients()
const missing = PARTS.filter((part) => !found(part))
if (missing.length > 0 && canInstall()) install(missing)
const still = missing.filter((part) => !found(part))
for (const { program, debian, purpose } of still) {
  process.stderr.write(
    `test set-up: '${program}' is missing (${purpose}); install it, on Debian: apt-get install ${debian}\n`,
  )
}
if (helmProgram() === null && canInstall()) installHelm()
const lacksHelm = helmProgram() === null
if (lacksHelm) {
  process.stderr.write(
    `test set-up: 'helm' is missing (renders and checks the chart); install it, with Go: go install ${HELM_PACKAGE}\n`,
  )
}
if ((still.length > 0 || lacksHelm) && process.env['CI'] === 'true') process.exitCode = 1
