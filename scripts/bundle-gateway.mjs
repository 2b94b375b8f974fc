/**
 * Bundles the gateway's own modules into `dist/`, with the packages that every process loads. A process that
 * loads 135 files in place of 800 starts in 60 % of the CPU time
 * (docs/decisions/project/0002-dependencies.md). What is loaded on demand stays in files of its own. Beside
 * `main.js` are the entries of the package and the scripts of threads, at the paths of their sources.
 */
import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { build } from 'esbuild'
import { writeDataFiles } from './write-data-files.mjs'

const ENTRIES = ['main', 'formats/codecs', 'policy/plugin-interface']
/** A thread compiles again what it shares with the program: its bundle has only what it uses. */
const THREADS = [
  'accounts/password-thread',
  'archive/archive-thread',
  'http/zstd-thread',
  'policy/rule-search-thread',
  'process/cluster/parent-guard-thread',
  'store/sqlite/background/background-worker',
]
/** Packages that every process loads. The others are native, or are loaded only where they are configured. */
const BUNDLED = [
  '@commander-js/extra-typings',
  '@opentelemetry/api',
  'commander',
  'http-proxy-3',
  'pino',
  'prom-client',
  'undici',
  'yaml',
  'zod',
]
/** CommonJS packages call `require` for the modules of Node, which an ES module does not have. */
const REQUIRE = `import { createRequire as createRequireHere } from 'node:module'
const require = createRequireHere(import.meta.url)`
/** In the folder of `main.js`: what several entries share, and what is loaded on demand. */
const CHUNK = /-[A-Z0-9]{8}\.js(?:\.map)?$/

/** Returns the files that it writes into `outdir`. */
async function bundle(entries, outdir) {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { metafile } = await build({
    entryPoints: entries.map((entry) => `src/${entry}.ts`),
    outbase: 'src',
    outdir,
    bundle: true,
    splitting: true,
    external: Object.keys(dependencies).filter((name) => !BUNDLED.includes(name)),
    banner: { js: REQUIRE },
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
  })
  return Object.keys(metafile.outputs)
}

function removeOthers(outdir, written) {
  for (const name of readdirSync(outdir)) {
    if (CHUNK.test(name) && !written.includes(`${outdir}/${name}`)) rmSync(`${outdir}/${name}`)
  }
}

/** What tests start hundreds of times, bundled into the folder of the compiled sources. */
export async function bundleForTests() {
  const outdir = 'build/src'
  removeOthers(outdir, [...(await bundle(['main'], outdir)), ...(await bundle(THREADS, outdir))])
}

/** Throws if a module cannot be bundled; esbuild has printed why. */
export async function bundleGateway() {
  removeOthers('dist', [...(await bundle(ENTRIES, 'dist')), ...(await bundle(THREADS, 'dist'))])
  writeDataFiles('dist')
}
