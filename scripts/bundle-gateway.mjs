/**
 * Bundles the gateway's own modules into `dist/`, with the packages that every process loads. A process that
 * loads 135 files in place of 800 starts in 60 % of the CPU time
 * (docs/decisions/project/0002-dependencies.md). What is loaded on demand stays in files of its own. Beside
 * `main.js` are the entries of the package and the scripts of threads, at the paths of their sources.
 */
import { readFileSync, readdirSync, rmSync } from 'node:fs'
import { build } from 'esbuild'
import { writeDataFiles } from './write-data-files.mjs'

const ENTRIES = [
  'main',
  'formats/codecs',
  'policy/plugin-interface',
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

/** Throws if a module cannot be bundled; esbuild has printed why. */
export async function bundleGateway() {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
  const { metafile } = await build({
    entryPoints: ENTRIES.map((entry) => `src/${entry}.ts`),
    outbase: 'src',
    outdir: 'dist',
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
  for (const name of readdirSync('dist')) {
    const isOld = CHUNK.test(name) && metafile.outputs[`dist/${name}`] === undefined
    if (isOld) rmSync(`dist/${name}`)
  }
  writeDataFiles('dist')
}
