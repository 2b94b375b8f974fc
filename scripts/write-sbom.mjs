/**
 * `node scripts/write-sbom.mjs` prints what a running gateway is made of, in CycloneDX. `npm sbom --omit=dev` leaves
 * out packages that the suite needs, too; so npm gets a lock file without those that only the suite needs.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const read = (path) => JSON.parse(readFileSync(path, 'utf8'))

const manifest = read('package.json')
const { packages, ...lock } = read('package-lock.json')
// npm checks the manifest against the lock file: neither may name what the other does not have.
for (const each of [manifest, packages['']]) delete each.devDependencies
delete manifest.overrides
const production = Object.entries(packages).filter(([, each]) => each.dev !== true)

const parent = mkdtempSync(join(tmpdir(), 'sluice-sbom-'))
// npm names the component after its folder.
const folder = join(parent, manifest.name)
try {
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const pruned = { ...lock, packages: Object.fromEntries(production) }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(pruned))
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' })
  process.exitCode = status ?? 1
} finally {
  rmSync(parent, { recursive: true })
}
