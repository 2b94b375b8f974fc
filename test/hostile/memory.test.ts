/**
 * Goal: while an upstream works on a request, the gateway holds at most four times the bytes of its body.
 * Method: a child process with `--expose-gc` processes a large body completely and measures its heap and
 * buffers before and after, with all references that an exchange keeps.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { ofToday } from '../helpers/long-suite.js'

const MOST = 4
const CHILD = fileURLToPath(new URL('memory-child.js', import.meta.url))

const BODIES = [
  '32 MiB of an image',
  '20 MiB of images beside 4 MiB of Chinese',
  '8 MiB of plain words',
  '8 MiB of Cyrillic',
  '8 MiB of Chinese',
  '8 MiB of escaped quotes',
  '400 strings of 80 KiB',
]

for (const name of ofToday(BODIES, 6)) {
  void t.test(name, async (t) => {
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['--expose-gc', CHILD, name])
    for (const [encoder, times] of Object.entries(JSON.parse(stdout) as Record<string, number>)) {
      t.ok(times <= MOST, `${encoder}: ${times.toFixed(2)} times the body`)
    }
  })
}
