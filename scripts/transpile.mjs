/**
 * Transpiles sources and tests into `build/`, and bundles the gateway into `dist/`, without a type check and
 * without the dashboard's page: about two seconds, where `build:test` with its types takes 20. What is
 * bundled is built again only if a source is newer.
 */
import { existsSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { bundleForTests, bundlePrograms, bundleTap, BUNDLES, PROGRAMS_FOLDER } from './bundle-for-tests.mjs'
import { bundleGateway, isChunk } from './bundle-gateway.mjs'
import { writeDataFiles } from './write-data-files.mjs'

const PAGE = 'src/dashboard/web'

/** What a bundle is made of, beside the sources. */
const BUNDLED_FROM = ['package.json', 'package-lock.json', 'config/models.yaml']

function modifiedMs(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** Removes files of sources that are gone: a renamed test would still run. */
function removeStale(root) {
  const folder = join('build', root)
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const source = `${root}/${name.replace(/\.js(\.map)?$/, '')}`
    const isBundled =
      root === 'src' &&
      (isChunk(name) || [BUNDLES, PROGRAMS_FOLDER].some((folder) => name.startsWith(folder)))
    if (isBundled || !/\.js(\.map)?$/.test(name) || existsSync(`${source}.ts`) || existsSync(`${source}.tsx`))
      continue
    rmSync(join(folder, name))
  }
}

function filesBelow(root) {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).map((name) => `${root}/${name}`)
}

/** Writes the changed files below `roots` into `build/`. */
async function transpile(roots) {
  roots.forEach(removeStale)
  const sources = roots
    .flatMap(filesBelow)
    .filter((path) => path.endsWith('.ts') && !path.startsWith(`${PAGE}/`))
  const output = (path) => join('build', path.replace(/ts$/, 'js'))
  const changed = sources.filter((path) => modifiedMs(path) > modifiedMs(output(path)))
  if (changed.length > 0) {
    const emit = { outdir: 'build', outbase: '.', format: 'esm', platform: 'node' }
    const options = { target: 'es2022', sourcemap: true, logLevel: 'warning' }
    await build({ ...emit, ...options, entryPoints: changed })
  }
  await writeDataFiles('build/src')
  process.stdout.write(`build: ${String(changed.length)} files transpiled\n`)
}

/** Whether `main` is older than something that its bundle is made of; a folder tells of removed files. */
function isOlder(main) {
  const sources = ['src', 'scripts'].flatMap((root) => [root, ...filesBelow(root)])
  return [...sources, ...BUNDLED_FROM].some((path) => modifiedMs(path) >= modifiedMs(main))
}

/** Bundles; `main` has the time of the start, so that what changes meanwhile is bundled the next time. */
async function bundleAt(main, bundle) {
  const start = new Date()
  await bundle()
  utimesSync(main, start, start)
}

// Before `transpile`, which writes one of these files itself.
const [testsAreOld, gatewayIsOld] = ['build/src/main.js', 'dist/main.js'].map(isOlder)
await transpile(['src', 'test', 'bench', 'grafana', 'docs/generate'])
await Promise.all([bundlePrograms(), bundleTap()])
if (testsAreOld) await bundleAt('build/src/main.js', bundleForTests)
if (gatewayIsOld) await bundleAt('dist/main.js', bundleGateway)
