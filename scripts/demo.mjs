/**
 * `npm run demo`: builds what has changed of the gateway and the dashboard, with a line of progress every two
 * seconds, then runs `sluice demo` in this process.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { clearInterval, setInterval } from 'node:timers'
import { pathToFileURL } from 'node:url'
import { changedParts } from './changed-parts.mjs'

/** What a user waits for, by part. */
const TITLES = { gateway: 'the gateway (2 s)', page: 'its dashboard (10 to 30 s)' }

const parts = [...changedParts().keys()]
if (parts.length > 0) {
  console.error(`Building ${parts.map((name) => TITLES[name]).join(' and ')}`)
  let seconds = 0
  const progress = setInterval(() => console.error(`building: ${(seconds += 2)} s`), 2000)
  const args = ['run', '--silent', 'build', '--', '--changed']
  const [code] = await once(spawn('npm', args, { stdio: 'inherit' }), 'exit')
  clearInterval(progress)
  if (code !== 0) process.exit(code ?? 1)
}
process.argv = [process.execPath, resolve('dist/main.js'), 'demo', ...process.argv.slice(2)]
await import(pathToFileURL(process.argv[1]).href)
