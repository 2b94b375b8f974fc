/**
 * `npm run dev`: the demo on port 8080, started again after each change below `src` or `config`, usually within
 * two seconds. Its account, key and traffic stay in `build/dev`. The page is built again, and types are checked,
 * in the background. Other arguments go to `sluice demo`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { clearTimeout, setTimeout } from 'node:timers'

const DEBOUNCE_MS = 100
const demoArgs = ['dist/main.js', 'demo', '--folder', 'build/dev', ...process.argv.slice(2)]

/** Never rejects; the compiler has printed what is wrong. */
function transpile() {
  return spawnSync(process.execPath, ['scripts/transpile.mjs'], { stdio: 'inherit' }).status === 0
}

const background = [
  spawn('vite', ['build', '--watch', '--logLevel', 'warn'], { stdio: 'inherit' }),
  spawn(process.execPath, [
    ...['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.json', '--noEmit'],
    ...['--watch', '--preserveWatchOutput'],
    ...['--tsBuildInfoFile', 'build/dev.tsbuildinfo'],
  ]),
]
background[1].stdout.pipe(process.stdout)

let demo = null
let restarting = null

async function restart() {
  if (demo !== null && demo.exitCode === null && demo.signalCode === null) {
    const exited = once(demo, 'exit')
    demo.kill('SIGTERM')
    await exited
  }
  if (transpile()) demo = spawn(process.execPath, demoArgs, { stdio: 'inherit' })
  restarting = null
}

let timer = null

function changed(_event, name) {
  if (name !== null && name.startsWith('dashboard/web')) return
  clearTimeout(timer)
  timer = setTimeout(() => {
    if (restarting === null) restarting = restart()
    else timer = setTimeout(changed, DEBOUNCE_MS, 'change', null)
  }, DEBOUNCE_MS)
}

for (const folder of ['src', 'config']) watch(folder, { recursive: true }, changed)
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const child of [...background, demo]) child?.kill('SIGTERM')
    process.exit(0)
  })
}
restarting = restart()
