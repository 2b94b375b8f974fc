/** Renders the Helm chart with its sets of values. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Where the set-up of the tests puts Helm, if it is not on the PATH. */
export const INSTALLED_HELM = join('build', 'clients', 'helm', 'helm')

export const CHART = join('deploy', 'helm', 'sluice')
export const VALUES = join('deploy', 'helm', 'values')
export const RENDERED = join('deploy', 'helm', 'rendered')

/** The names of the sets of values, without the extension. */
export function valueSets(): string[] {
  return readdirSync(VALUES).map((file) => file.replace(/\.yaml$/, ''))
}

/** The digest of all files that determine what Helm renders for a set of values. */
export function digestOf(set: string): string {
  const hash = createHash('sha256')
  const files = readdirSync(CHART, { recursive: true, encoding: 'utf8' })
    .map((name) => join(CHART, name))
    .filter((path) => statSync(path).isFile())
    .sort()
  for (const path of [...files, join(VALUES, `${set}.yaml`)]) {
    hash.update(`${path.replaceAll('\\', '/')}\n`).update(readFileSync(path))
  }
  return hash.digest('hex')
}

/** Helm on the PATH, or the installed one; null if there is none. */
export function helmProgram(): string | null {
  const programs = ['helm', INSTALLED_HELM]
  return programs.find((path) => spawnSync(path, ['version', '--short']).status === 0) ?? null
}

/** The reason to skip a test if `helm` is missing, otherwise false. In CI it is required. */
export function helmMissing(): string | false {
  if (helmProgram() !== null) return false
  const message = 'helm is missing: node build/test/setup.js'
  if (process.env['CI'] === 'true') throw new Error(message)
  process.stderr.write(`\nSKIPPED, NOT PASSED: ${message}\n\n`)
  return message
}

/** Runs Helm and returns its output. Throws with its message if it fails. */
export function helm(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(helmProgram() ?? 'helm', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr === '' ? stdout : stderr)
  return stdout
}

/** The file of a set of values, with the digest on its first line. */
export function render(set: string): string {
  const made = helm(
    ...['template', 'sluice', CHART, '--namespace', 'gateway', '--kube-version', '1.31.0'],
    ...['--values', join(VALUES, `${set}.yaml`)],
  )
  return `# Rendered by npm run render:chart; do not edit. Chart and values: ${digestOf(set)}\n${made}`
}
