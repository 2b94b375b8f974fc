/**
 * Goal: `sluice emulate` serves until it gets a signal, and prints its base URLs.
 * Method: the program itself as a child process on a free port.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { objectOf, stringOf } from '../../src/base/json.js'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))

void t.test('prints its addresses, serves there, and exits 0 on SIGTERM', async (t) => {
  const child = spawn(process.execPath, [MAIN, 'emulate', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const lines: unknown[] = await once(createInterface({ input: child.stdout }), 'line')
  const { base_urls } = objectOf(JSON.parse(String(lines[0])))
  const response = await fetch(`${stringOf(objectOf(base_urls).openai) ?? ''}/models`, {
    headers: { authorization: 'Bearer k' },
  })
  t.equal(response.status, 200)
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
})

void t.test('exits 2 after a wrong option and 0 after --help', async (t) => {
  const run = async (args: readonly string[]): Promise<{ code: unknown; out: string }> => {
    const child = spawn(process.execPath, [MAIN, 'emulate', ...args])
    let out = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        out += chunk.toString()
      })
    }
    const closed: unknown[] = await once(child, 'close')
    return { code: closed[0], out }
  }
  t.match(await run(['--port', '99999']), { code: 2, out: /--port must be a whole number/ })
  t.match(await run(['--nonsense']), { code: 2, out: /nonsense/ })
  t.match(await run(['--help']), { code: 0, out: /Usage: sluice emulate[\s\S]*cut .*mode=reset/ })
})
