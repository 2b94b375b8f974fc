/**
 * `node scripts/build.mjs` compiles the gateway and the dashboard's page into `dist/`; `--fresh` removes
 * `dist/` first, so that a package has no file of an older source; `--changed` builds only the part whose
 * sources have changed, and no types of the library. `--test` compiles sources, tests and benchmarks with
 * their types into `build/`; it writes the files also if the types are wrong, and then exits with 2. The
 * compiler is TypeScript 7 (`typescript-7`), a quarter of the CPU time of the JavaScript one, which ESLint
 * still needs.
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { bundleForTests, bundlePrograms, bundleTap } from './bundle-for-tests.mjs'
import { bundleGateway } from './bundle-gateway.mjs'
import { changedParts, partStates, recordBuilt } from './changed-parts.mjs'
import { writeDataFiles } from './write-data-files.mjs'

const TSC = 'node_modules/typescript-7/bin/tsc'

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' })
  return status ?? 1
}

if (process.argv.includes('--test')) {
  const status = run(process.execPath, [TSC, '-p', 'tsconfig.json'])
  await bundleForTests()
  await bundlePrograms()
  await bundleTap()
  await writeDataFiles('build/src')
  process.exit(status)
}
if (process.argv.includes('--fresh')) rmSync('dist', { recursive: true, force: true })
const isPartial = process.argv.includes('--changed')
const parts = isPartial ? changedParts() : partStates()
if (!isPartial) {
  const status = run(process.execPath, [TSC, '-p', 'tsconfig.dist.json'])
  if (status !== 0) process.exit(status)
}
if (parts.has('gateway')) await bundleGateway()
if (parts.has('page')) {
  const status = run('vite', ['build', '--logLevel', 'warn'])
  if (status !== 0) process.exit(status)
}
recordBuilt(parts)
